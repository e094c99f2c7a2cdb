#include "src/layout.h"

#include <algorithm>
#include <array>
#include <string>

#include "src/given.h"

namespace hone::python {
namespace {

/// Neighbouring axes that one stride goes through.
struct Group {
  std::int64_t size;
  std::int64_t stride;
  bool is_reduced;
};

int parse_axis(nb::handle axis, int ndim) {
  if (PyIndex_Check(axis.ptr()) == 0) refuse_given("axis", "an integer, a tuple of integers or None", axis);
  const Py_ssize_t given = PyNumber_AsSsize_t(axis.ptr(), nullptr);  // the nearest to one that is beyond all indices
  if (given == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (given < -ndim || given >= ndim) {
    const std::string message = "axis " + std::string(nb::str(axis).c_str()) + " of an array with " +
                                std::to_string(ndim) + " dimensions";
    throw nb::index_error(message.c_str());
  }
  return static_cast<int>(given < 0 ? given + ndim : given);
}

/// A list of groups on the stack: calls allocate nothing here.
struct Groups {
  std::array<Group, kMaxDims> all;
  int count = 0;

  void add(const Group& group) { all[count++] = group; }
  const Group* begin() const { return all.data(); }
  const Group* end() const { return all.data() + count; }
  const Group& operator[](int at) const { return all[at]; }
};

Groups merged(const Groups& axes) {
  Groups groups;
  for (const Group& axis : axes) {
    Group* const last = groups.count == 0 ? nullptr : &groups.all[groups.count - 1];
    if (last != nullptr && last->is_reduced == axis.is_reduced && last->stride == axis.stride * axis.size) {
      last->size *= axis.size;
      last->stride = axis.stride;
    } else {
      groups.add(axis);
    }
  }
  return groups;
}

std::optional<Layout> match(const Groups& g) {
  using Kind = Layout::Kind;
  if (g.count == 0) return Layout{};
  for (const Group& group : g)
    if (group.stride < 1) return std::nullopt;
  const Group& last = g[g.count - 1];
  const bool is_dense = last.stride == 1;
  switch (g.count) {
    case 1:
      if (!last.is_reduced) return Layout{Kind::rows, last.size, 1, 1, last.stride};
      if (is_dense) return Layout{Kind::array, 1, last.size, 1, 0};
      return Layout{Kind::columns, 1, last.size, 1, last.stride};
    case 2:
      if (last.is_reduced) {
        if (g[0].is_reduced || g[0].stride < last.stride * last.size) return std::nullopt;
        if (is_dense) return Layout{Kind::rows, g[0].size, last.size, 1, g[0].stride};
        if (g[0].stride != last.stride * last.size) return std::nullopt;
        return Layout{Kind::columns, g[0].size, last.size, 1, last.stride};
      }
      if (!g[0].is_reduced || !is_dense || g[0].stride < last.size) return std::nullopt;
      return Layout{Kind::columns, 1, g[0].size, last.size, g[0].stride};
    case 3:
      if (last.is_reduced || !g[1].is_reduced || !is_dense || g[1].stride < last.size ||
          g[0].stride != g[1].stride * g[1].size)
        return std::nullopt;
      return Layout{Kind::columns, g[0].size, g[1].size, last.size, g[1].stride};
    default:
      return std::nullopt;
  }
}

}  // namespace

Axes parse_axes(nb::handle axis, int ndim) {
  if (axis.is_none()) return ndim == 0 ? 0 : ~Axes{0} >> (kMaxDims - ndim);
  if (PyTuple_Check(axis.ptr()) == 0) return Axes{1} << parse_axis(axis, ndim);
  Axes axes = 0;
  for (const nb::handle one : nb::borrow<nb::tuple>(axis)) {
    const Axes bit = Axes{1} << parse_axis(one, ndim);
    if ((axes & bit) != 0) throw nb::value_error("axis: the same axis twice");
    axes |= bit;
  }
  return axes;
}

Shape reduced_shape(const Shape& shape, Axes axes, bool keepdims) {
  Shape result;
  for (int i = 0; i < shape.ndim; ++i) {
    const bool is_reduced = (axes >> i & 1) != 0;
    if (!is_reduced || keepdims) result.size[result.ndim++] = is_reduced ? 1 : shape.size[i];
  }
  return result;
}

std::optional<Layout> find_layout(const Array& array, Axes axes, Reorder reorder) {
  Groups all;
  std::int64_t kept = 1, reduced = 1;
  for (int i = 0; i < array.shape.ndim; ++i) {
    const bool is_reduced = (axes >> i & 1) != 0;
    (is_reduced ? reduced : kept) *= array.shape.size[i];
    if (array.shape.size[i] != 1) all.add({array.shape.size[i], array.strides[i], is_reduced});
  }
  if (kept == 0 || reduced == 0)
    return kept == 1 ? Layout{Layout::Kind::array, 1, 0, 1, 0} : Layout{Layout::Kind::rows, kept, reduced, 1, 0};
  if (const auto found = match(merged(all)); found || reorder == Reorder::none) return found;

  Groups in_memory = all;
  std::stable_sort(in_memory.all.begin(), in_memory.all.begin() + in_memory.count,
                   [](const Group& a, const Group& b) { return a.stride > b.stride; });
  const auto keeps_order = [&](bool is_reduced) {
    const Group* previous = nullptr;
    for (const Group& group : all) {
      if (group.is_reduced != is_reduced) continue;
      if (previous != nullptr && previous->stride < group.stride) return false;
      previous = &group;
    }
    return true;
  };
  if (!keeps_order(false) || (reorder != Reorder::reduced && !keeps_order(true))) return std::nullopt;
  return match(merged(in_memory));
}

}  // namespace hone::python
