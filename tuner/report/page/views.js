// The sections over all winners that pass the filters. Each returns its nodes, or none where there is nothing to draw.
const winnerTip = (w) =>
  `${w.p.label}, n = ${shapeText(w)}\n${shortPolicy(w.policy)}, ${blocksText(w.blocks)} blocks\n` +
  (w.us > 0 ? `${usText(w.us)} µs ± ${usText(w.spread)}, ${gbpsText(w.gbps)} GB/s, ` +
   `${percentText(shareOfRoofline(w))} of the roofline\n` : "") + `winner ${w.key}, ${w.how}`;

const section = (id, title, lead, ...content) => el("section", { id }, el("h2", {}, title),
  el("p", { class: "lead" }, lead), content);

/** Parameters over problems: what their next best and their worst values cost, as geometric means, and the problem in
    which the worst value costs most. */
function parameterCosts(tuned) {
  const costs = [];
  for (const [family, ofFamily] of groupBy(tuned.filter((w) => w.tuning), (w) => w.p.family)) {
    const byName = groupBy(ofFamily.flatMap((w) => effectsOf(w).filter((each) => each.values.length > 1)
      .map((effect) => ({ ...effect, w }))), (each) => each.name);
    for (const [name, effects] of byName) {
      const most = effects.reduce((a, b) => (b.worst > a.worst ? b : a));
      costs.push({ family, name, problems: effects.length, of: ofFamily.length, most,
                   next: geometricMean(effects.map((each) => 1 + each.next)) - 1,
                   worst: geometricMean(effects.map((each) => 1 + each.worst)) - 1 });
    }
  }
  return costs.sort((a, b) => b.worst - a.worst);
}

const LIMITS = [["memory bandwidth", "memory"], ["launch", "launch"], ["latency", "latency"],
                ["arithmetic and issue", "arithmetic"]];
const stack = (parts, total) => el("div", { class: "stack", role: "img", "aria-label": parts.map(([words, , value]) =>
  `${words}: ${value}`).join(", ") }, parts.filter(([, , value]) => value > 0).map(([words, className, value]) =>
  el("i", { class: className, style: `width:${100 * value / total}%`,
    "data-tip": `${words}: ${Number(value.toPrecision(3))}` })));
const stackKey = (parts) => el("div", { class: "key" }, parts.map(([words, className]) =>
  el("span", {}, el("span", { class: "stack" }, el("i", { class: className })), words)));

/** How much longer something takes, as a factor. */
const ratioText = (cost) => (1 + cost).toFixed(cost < 9 ? 2 : 1) + "×";

/** Says what a winner's bandwidth is compared with. Where the fastest winner is the ceiling, it has none but itself. */
function ceilingText(w) {
  const device = w.p.device;
  if (!(device.read_gbps > 0)) return ".";
  return isCeiling(w) ? ", the most of all winners here: it is the read ceiling itself."
    : ` where ${gbpsText(device.read_gbps)} are the read ceiling.`;
}

function answers(shown) {
  const tuned = shown.filter((w) => w.us > 0), known = tuned.filter((w) => w.tuning);
  if (!tuned.length) return [];
  // Over all problems together: a parameter that matters in one of a hundred problems is not the answer.
  const total = (each) => each.problems * Math.log1p(each.worst);
  const costs = parameterCosts(known).sort((a, b) => total(b) - total(a)), top = costs[0];
  const single = costs.reduce((a, b) => (!a || b.most.worst > a.most.worst ? b : a), null);
  const counts = LIMITS.map(([name, className]) => [name, className,
    known.filter((w) => w.tuning.limit.name === name).length]);
  const main = counts.reduce((a, b) => (b[2] > a[2] ? b : a));
  const largest = known.reduce((a, b) => (!a || b.bytes > a.bytes ? b : a), null);
  const far = [...tuned].sort((a, b) => shareOfRoofline(a) - shareOfRoofline(b)).slice(0, 3);
  return el("div", { class: "answers" },
    el("div", { class: "card", id: "answer-parameter" }, el("h2", {}, "Which parameter matters most?"),
      top ? [el("p", { class: "big" }, top.name),
             el("p", {}, `In ${top.family}, its worst value takes ${ratioText(top.most.worst)} as long as its best in `,
                winnerLink(top.most.w), top.problems === 1 ? ", the one problem in which values of it were compared"
                  : `, where it costs most, and ${ratioText(top.worst)} in the geometric mean of ` +
                    `${top.problems} problems`,
                `; the next best value takes ${ratioText(top.next)}${top.problems === 1 ? "" : " in that mean"}. `,
                el("a", { href: "#parameters" }, "All parameters")),
             single !== top ? el("p", { id: "answer-single" }, "In one problem, ",
               `${single.name} of ${single.family} costs most: ${ratioText(single.most.worst)} in `,
               winnerLink(single.most.w), ".") : null,
             costs[1] ? el("p", { class: "soft" }, "Then, by what all problems would lose together: " +
               costs.slice(1, 4).map((each) => `${each.name} of ${each.family}, ${ratioText(each.worst)} in ` +
                 (each.problems === 1 ? "1 problem" : `the mean of ${each.problems} problems and ` +
                   `${ratioText(each.most.worst)} at most`)).join("; ") + ".") : null]
        : el("p", { class: "soft" }, "No trials are stored with these winners.")),
    el("div", { class: "card", id: "answer-limit" }, el("h2", {}, "What is the limit?"),
      known.length ? [el("p", { class: "big" }, main[0]),
             stack(counts, known.length), stackKey(counts.filter((each) => each[2]).map(([name, className, count]) =>
               [`${name} ${count}`, className])),
             el("p", {}, `So many of ${countText(known.length, "tuned problem")} are limited by each. The largest, `,
                winnerLink(largest), `, is limited by ${largest.tuning.limit.name}: it moves ` +
                `${gbpsText(largest.gbps)} GB/s` + ceilingText(largest))]
        : el("p", { class: "soft" }, "No trials are stored with these winners.")),
    el("div", { class: "card", id: "answer-far" }, el("h2", {}, "Where is it far from it?"),
      el("p", { class: "big" }, `${percentText(shareOfRoofline(far[0]))} of the roofline at worst`),
      el("ol", {}, far.map((w) => el("li", {}, winnerLink(w), `: ${usText(w.us)} µs, the roofline is ` +
        `${usText(w.us * shareOfRoofline(w))} µs: ${percentText(shareOfRoofline(w))}` +
        (w.tuning ? ` (${w.tuning.limit.name})` : "")))),
      el("p", { class: "soft" }, "The roofline is the time of one launch and of the bytes at the read ceiling. ",
         el("a", { href: "#shapes" }, "All shapes"))));
}

const winnerLink = (w) => el("a", { href: address({ w: w.key, t: undefined }), "data-tip": winnerTip(w) },
  `${w.p.label} ${shapeText(w)}`);

function deviceSection(shown) {
  const list = [...new Set(shown.map((w) => w.p.device))];
  if (!list.length) return null;
  const fact = (name, value) => (value ? [el("div", {}, el("dt", {}, name), el("dd", {}, value))] : []);
  return section("devices", "Devices and ceilings", "What was measured on, and what bounds every call there.",
    list.map((device) => el("div", { class: "device" }, el("h3", {}, device.label),
      el("dl", { class: "facts" },
        fact("architecture", clean(device.architecture)), fact("SMs", device.sm_count),
        fact("threads per SM", device.max_threads_per_sm), fact("blocks per SM", device.max_blocks_per_sm),
        fact("registers per SM", device.registers_per_sm), fact("shared memory per SM",
          device.smem_bytes_per_sm && bytesText(device.smem_bytes_per_sm)),
        fact("last-level cache", device.l2_bytes && bytesText(device.l2_bytes)),
        fact("bandwidth of clock and bus", device.implied_gbps && gbpsText(device.implied_gbps) + " GB/s"),
        fact(device.read_is_measured ? "read ceiling (fastest winner)" : "read ceiling (best kernels)",
          device.read_gbps && gbpsText(device.read_gbps) + " GB/s"),
        device.contexts.map((context) => fact(`shortest call, ${context.name}`, usText(context.floor_us) + " µs")),
        fact("bytes in flight needed per SM", device.needed_bytes && bytesText(device.needed_bytes)),
        fact("driver", device.drivers.map(clean).join(", ")),
          fact("compiler", device.compilers.map(clean).join(", "))))));
}

const inWords = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** What is not usual about the numerics: " reproducible", " NaN ignored". */
const unusual = (p) => (p.numerics.replace(/^fast(, )?/, "") ? " " + p.numerics.replace(/^fast(, )?/, "") : "");

/** GB/s over n of one device, dtype and context; a series for each operation. */
function bandwidthFigure(id, title, group) {
  const device = group[0].p.device;
  const all = [...groupBy(group, (w) => w.p.index).values()].sort((a, b) => inWords(a[0].p.label, b[0].p.label));
  const series = all.slice(0, MARKERS.length);
  const tuned = group.filter((w) => w.us > 0);
  const top = Math.max(device.implied_gbps, device.read_gbps, ...tuned.map((w) => w.gbps));
  const nearCeiling = Math.max(...tuned.map((w) => w.gbps)) > device.read_gbps / 40;
  const ns = group.flatMap((w) => [w.us > 0 ? w.extents[0] : NaN]);
  const x = axis({ values: ns, kind: "octaves", label: "n", format: sizeText, most: 7 });
  const y = axis({ values: [0, nearCeiling ? top : Math.max(...tuned.map((w) => w.gbps))], from: 0, label: "GB/s",
    most: 5 });
  const strips = 9 * series.length + 4;
  const names = series.map((of) => of[0].p.op + (of[0].p.align === 16 ? "" : "@" + of[0].p.align) +
    unusual(of[0].p));
  const room = 28 + 6.2 * Math.max(...names.map((name) => name.length));
  const p = plot({ x, y, width: 460, height: 270 + strips, right: room, below: strips, title });
  if (device.read_gbps > 0 && nearCeiling) {
    const high = Math.max(device.implied_gbps, device.read_gbps);
    p.under.append(svg("rect", { class: "band", x: p.left, width: p.right - p.left, y: p.py(high),
                                 height: Math.max(1, p.py(device.read_gbps) - p.py(high)) }));
    p.over.append(svg("path", { class: "edge", d: `M${p.left} ${p.py(device.read_gbps).toFixed(1)}H${p.right}` }),
      svg("text", { class: "soft", x: p.left + 5, y: p.py(device.read_gbps) + 13 }, "read ceiling " +
        gbpsText(device.read_gbps)));
  }
  const ends = [];
  series.forEach((of, s) => {
    const points = of.filter((w) => w.us > 0).sort((a, b) => a.extents[0] - b.extents[0]);
    const at = points.map((w) => [p.px(w.extents[0]), p.py(w.gbps)]);
    if (at.length > 1) p.over.append(line(at, s));
    if (series.length <= 2) {
      const predicted = points.filter((w) => w.won && w.won.predicted > 0);
      if (predicted.length > 1) p.over.append(svg("path", { class: `path thin faint ${style(s)}`,
        "stroke-dasharray": "2 4",
        d: predicted.map((w, i) => `${i ? "L" : "M"}${p.px(w.extents[0]).toFixed(1)} ` +
          Math.max(p.top, p.py(w.bytes / w.won.predicted / 1000)).toFixed(1)).join("") }));
    }
    points.forEach((w, i) => p.over.append(mark(at[i][0], at[i][1], { series: s, w, tip: winnerTip(w) })));
    if (at.length) ends.push({ series: s, name: names[s], y: at[at.length - 1][1] });
    const row = p.bottom + 24 + 9 * s;
    for (const w of of) {
      const [first, last] = w.ranges[0];
      const from = Math.max(p.left, p.px(Math.max(first, 1))), to = Math.min(p.right, p.px(last + 1));
      if (to <= from) continue;
      const box = svg("rect", { class: style(s), x: from, y: row, width: Math.max(1, to - from - .6), height: 6,
        fill: w.how === "tuned" ? "currentColor" : w.how === "lent" ? "currentColor" : "none",
        "fill-opacity": w.how === "lent" ? .3 : null, stroke: "currentColor", "stroke-width": .8 });
      const target = measuredBy(w) || w;
      p.over.append(svg("a", { href: address({ w: target.key, t: undefined }), tabindex: -1,
                               "data-tip": `n = ${servesText(w)}\n` + winnerTip(w) }, box));
    }
  });
  endNames(p.over, ends, p.right, p.top, p.bottom);
  const has = (how) => group.some((w) => w.how === how);
  const note = all.length > series.length ? `${series.length} of ${all.length} series; filters show the others.` : "";
  return figure(id, title, p.root, { note, legend: [
    legendMark("tuned", 0), has("lent") ? legendItem("lent: another size's winner serves it", svg("rect",
      { class: "s0", x: 1, y: 3, width: 20, height: 6, fill: "currentColor", "fill-opacity": .3,
        stroke: "currentColor" })) : null,
    has("nearest") || has("heuristic") ? legendItem("predicted: not measured", svg("rect",
      { class: "s0", x: 1, y: 3, width: 20, height: 6, fill: "none", stroke: "currentColor" })) : null,
    series.length <= 2 ? legendLine("the model's prediction", "path thin faint s0", "2 4") : null,
    device.implied_gbps > device.read_gbps && nearCeiling ? legendBox("read ceiling to clock × bus", "band") : null,
  ].filter(Boolean) });
}

const MOST_PLOTS = 24;

function bandwidthSection(shown) {
  const lines = shown.filter((w) => dimensions(w) === 1);
  const groups = [...groupBy(lines, (w) => [w.p.family, w.p.dtype, w.p.context,
    w.p.device.index].join("\u0001")).values()]
    .filter((group) => group.filter((w) => w.us > 0).length > 1)
    .sort((a, b) => inWords(titleOf(a, false), titleOf(b, false)) || a[0].p.device.index - b[0].p.device.index);
  if (!groups.length) return null;
  const many = new Set(shown.map((w) => w.p.device)).size > 1;
  return section("bandwidth", "Bandwidth over n", "The strips below each plot show how the sizes between are served." +
    (groups.length > MOST_PLOTS ? ` ${MOST_PLOTS} of ${groups.length} plots; the filters show the others.` : ""),
    el("div", { class: "figures wide" }, groups.slice(0, MOST_PLOTS).map((group, i) =>
      bandwidthFigure("bandwidth-" + i, titleOf(group, many), group))));
}
const titleOf = (group, withDevice) => `${group[0].p.family} ${group[0].p.dtype}` +
  (group[0].p.context === "stream" ? "" : ", " + group[0].p.context) +
    (withDevice ? ` on ${group[0].p.device.label}` : "");

function modelSection(shown) {
  const known = shown.filter((w) => w.won && w.won.predicted > 0);
  if (known.length < 2) return null;
  const families = [...new Set(known.map((w) => w.p.family))];
  const times = known.flatMap((w) => [w.us, w.won.predicted]);
  const range = { from: Math.min(...times) / 1.15, to: Math.max(...times) * 1.15 };
  const p = plot({ x: axis({ values: times, kind: "log", label: "predicted µs", format: Number, ...range }),
                   y: axis({ values: times, kind: "log", label: "measured µs", format: Number, ...range }),
                     width: 460, height: 330 });
  p.over.append(svg("path",
    { class: "edge", d: `M${p.px(range.from)} ${p.py(range.from)}L${p.px(range.to)} ${p.py(range.to)}` }));
  for (const w of known) p.over.append(mark(p.px(w.won.predicted), p.py(w.us),
    { series: families.indexOf(w.p.family), kind: "hollow",
    w, trial: w.won, tip: winnerTip(w) + `\npredicted ${usText(w.won.predicted)} µs` }));
  const ratios = known.map((w) => w.us / w.won.predicted).sort((a, b) => a - b);
  const firsts = known.map((w) => w.tuning.trials.find((trial) => trial.isDefault)).map((trial, i) =>
    (trial && trial.us > 0 ? trial.us / known[i].us : 0)).filter((gain) => gain > 0);
  const rejected = new Map();
  for (const w of shown.filter((each) => each.tuning)) for (const each of w.tuning.rejected) {
    const key = reasonText(each);
    rejected.set(key, (rejected.get(key) || 0) + each.count);
  }
  return section("model", "Predicted against measured",
    `Winners take ${quantile(ratios, .5).toFixed(2)} times what the occupancy model predicts in the median, and four ` +
    `of five are between ${quantile(ratios, .1).toFixed(2)} and ${quantile(ratios, .9).toFixed(2)} times.` +
      (firsts.length ? ` They are ` +
    `${geometricMean(firsts).toFixed(2)} times as fast as the model's first choices (geometric mean).` : ""),
    el("div", { class: "figures wide" },
      figure("model-winners", "Winners", p.root,
        { legend: [families.length > 1 ? families.map((name, i) => legendMark(name, i, "hollow")) : [],
        legendLine("as predicted", "edge")].flat() }),
      barFigure("rejected", "Not measured, by reason", [...rejected].sort((a, b) => b[1] - a[1]))));
}

const reasonText = ({ verdict, reason }) => (verdict === "rejected" ? "" : verdict + ": ") + reason;

/** Horizontal bars with their words above them. */
function barFigure(id, title, bars, note) {
  if (!bars.length) return null;
  const most = 14, shownBars = bars.slice(0, most), width = 460, rowHeight = 30;
  const rest = bars.slice(most).reduce((sum, each) => sum + each[1], 0);
  if (rest) shownBars.push([`${bars.length - most} other reasons`, rest]);
  const top = Math.max(...shownBars.map((each) => each[1]));
  const root = svg("svg", { class: "figure", viewBox: `0 0 ${width} ${rowHeight * shownBars.length + 4}`, width,
                            height: rowHeight * shownBars.length + 4, role: "img", "aria-label": title });
  shownBars.forEach(([words, count], i) => {
    const y = rowHeight * i, length = Math.max(2, (width - 60) * count / top);
    root.append(svg("g", { "data-tip": `${words}\n${count}` },
      svg("text", { x: 0, y: y + 12 }, words.length > 80 ? words.slice(0, 79) + "…" : words),
      svg("rect", { class: "bar" + (/^(wrong|failed): /.test(words) ? "" : " other"), x: 0, y: y + 16, width: length,
        height: 8, rx: 2 }),
      svg("text", { class: "soft", x: length + 6, y: y + 24 }, count)));
  });
  return figure(id, title, root, { note });
}

function parameterSection(shown) {
  const costs = parameterCosts(shown.filter((w) => w.us > 0));
  if (!costs.length) return null;
  const figures = [...groupBy(costs, (each) => each.family)].map(([family, list], index) => {
    const width = 520, rowHeight = 26, left = 128, right = 96, top = 22;
    const height = top + rowHeight * list.length + 26;
    const x = axis({ values: list.flatMap((each) => [each.next, each.worst, each.most.worst])
      .map((cost) => Math.max(cost, 1e-3)),
      kind: "log",
                     label: "", format: costText, from: 1e-3, coarse: true });
    const px = x.place(left, width - right);
    const root = svg("svg", { class: "figure", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
                              "aria-label": "what parameters of " + family + " are worth" });
    for (const tick of x.ticks) root.append(svg("path", { class: "grid", d: `M${px(tick)} ${top - 6}V${height - 22}` }),
      svg("text", { class: "soft", x: px(tick), y: height - 8, "text-anchor": "middle" }, costText(tick)));
    list.forEach((each, i) => {
      const y = top + rowHeight * (i + .5);
      const [a, b, c] = [each.next, each.worst, each.most.worst].map((cost) => px(Math.max(cost, 1e-3)));
      root.append(svg("text", { x: left - 10, y: y + 4, "text-anchor": "end", class: i ? "" : "name" }, each.name),
        svg("path", { class: "path thin faint s0", d: `M${b} ${y}H${c}` }),
        svg("path", { class: "path s0", d: `M${a} ${y}H${b}` }),
        mark(c, y, { series: 2, kind: "hollow", w: each.most.w, tip: `${each.name}: the worst value in ` +
          `${each.most.w.p.label} ${shapeText(each.most.w)}, where it costs most, ${costText(each.most.worst)}` }),
        mark(a, y, { series: 0, kind: "hollow", w: each.most.w,
          tip: `${each.name}: the next best value, ${costText(each.next)}` }),
        mark(b, y, { series: 1, w: each.most.w,
          tip: `${each.name}: the worst value, ${costText(each.worst)}` }),
        svg("text", { class: "soft", x: width, y: y + 4, "text-anchor": "end" }, countText(each.problems, "problem")));
    });
    return figure("parameters-" + index, family, root, { legend: [
      legendMark("the next best value costs in the mean", 0, "hollow"),
      legendMark("the worst value costs in the mean", 1), legendMark("and in the worst problem", 2, "hollow")] });
  });
  return section("parameters", "Which parameter mattered",
    "For each value of a parameter, the best candidate that was measured with it stands for it. The cost is its time " +
    "over the best value's: as a geometric mean over problems, and in the problem where the worst value costs most, " +
    "which a mean over many may hide. A search measures promising candidates, so bad values " +
    "look better than they are; hone tune --exhaustive measures all.", el("div", { class: "figures wide" }, figures));
}

/** Two caches: the time of A over that of B for each problem that both have. */
function compareSection(shown) {
  if (!comparing) return null;
  const shared = D.devices.some((a) => a.cache === 0 && D.devices.some((b) => b.cache === 1 && b.name === a.name));
  const keyOf = (w) => [shared ? w.p.device.name : "", w.p.family, w.p.op, w.p.dtype, w.p.numerics, w.p.context,
    w.p.align,
                        w.extents.join("x")].join("\u0001");
  const tuned = shown.filter((w) => w.us > 0),
    others = new Map(tuned.filter((w) => w.p.device.cache === 1).map((w) => [keyOf(w), w]));
  const pairs = tuned.filter((w) => w.p.device.cache === 0 && others.has(keyOf(w))).map((a) => {
    const b = others.get(keyOf(a));
    return { a, b, ratio: a.us / b.us };
  });
  const lead = `A is ${clean(D.caches[0].path)}, B is ${clean(D.caches[1].path)}. `;
  if (!pairs.length) return section("compare", "A beside B", lead + "They have no tuned problem in common.");
  const dtypes = [...new Set(pairs.map(({ a }) => a.p.dtype))];
  const far = Math.max(1.2, ...pairs.map(({ ratio }) => Math.max(ratio, 1 / ratio)));
  const p = plot({ x: axis({ values: pairs.map(({ a }) => a.bytes), kind: "octaves", label: "bytes moved",
    format: bytesText }),
                   y: axis({ values: [], kind: "log", from: 1 / far / 1.05, to: far * 1.05,
                     label: "time of A ÷ time of B", format: Number }),
                   width: 560, height: 300 });
  p.over.append(svg("path", { class: "edge", d: `M${p.left} ${p.py(1)}H${p.right}` }));
  for (const { a, b, ratio } of pairs) p.over.append(mark(p.px(a.bytes), p.py(ratio),
    { series: dtypes.indexOf(a.p.dtype), w: a,
    tip: `${a.p.label}, n = ${shapeText(a)}\nA ${usText(a.us)} µs, B ${usText(b.us)} µs: ${ratio.toFixed(2)}` }));
  const mean = geometricMean(pairs.map(({ ratio }) => ratio));
  const table = [...pairs].sort((x, y) => Math.abs(Math.log(y.ratio)) - Math.abs(Math.log(x.ratio))).slice(0, 20);
  return section("compare", "A beside B", lead +
    `Over ${countText(pairs.length, "problem")} that both have tuned, A takes ` +
    `${mean.toFixed(3)} times as long as B (geometric mean).`, el("div", { class: "figures wide" },
    figure("compare-times", "Above the line B is faster", p.root,
      { legend: dtypes.map((name, i) => legendMark(name, i)) })),
    el("div", { class: "table" },
      el("table", {}, el("thead", {}, el("tr", {}, ["problem", "n"].map((name) => el("th", {}, name)),
      ["A µs", "B µs", "A ÷ B"].map((name) => el("th", { class: "number" }, name)), el("th", {}, "winner of A"),
        el("th", {}, "winner of B"))),
      el("tbody", {}, table.map(({ a, b, ratio }) => el("tr", {}, el("td", {}, a.p.label), el("td", {}, shapeText(a)),
        [usText(a.us), usText(b.us), ratio.toFixed(3)].map((value) => el("td", { class: "number" }, value)),
        [a, b].map((w) => el("td", { class: "wide" }, el("a", { href: address({ w: w.key, t: undefined }) },
          shortPolicy(w.policy))))))))));
}
