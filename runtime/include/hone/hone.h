// Everything that a program which links Hone needs.
#pragma once

#include <hone/device.h>
#include <hone/error.h>
#include <hone/session.h>
#include <hone/tuned_reduce.h>
