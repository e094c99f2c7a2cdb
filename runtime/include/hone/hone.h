// Includes everything that a program needs to call Hone.
#pragma once

#include <hone/copy.h>
#include <hone/custom_reduce.h>
#include <hone/device.h>
#include <hone/error.h>
#include <hone/fused_reduce.h>
#include <hone/own_stream.h>
#include <hone/reduce_axis.h>
#include <hone/segmented_reduce.h>
#include <hone/session.h>
#include <hone/softmax.h>
#include <hone/transpose.h>
#include <hone/tune_arguments.h>
#include <hone/tuned_reduce.h>
