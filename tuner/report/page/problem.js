// One problem: why its winner won, every trial, and the table to which every point of its figures leads.
const trialTip = (trial) => `${shortPolicy(trial.policy)}, ${blocksText(trial.blocks)} blocks\n` +
  `${usText(trial.us)} µs ± ${usText(trial.spread)}, predicted ${usText(trial.predicted)}` +
  (trial.isWinner ? "\nthe winner" : "") + (trial.isDefault ? "\nthe model's first choice" : "") +
  (trial.reason ? "\n" + trial.reason : "");

/** The winner is filled, the model's first choice a square, the others hollow. */
const trialMark = (p, x, y, w, trial) => mark(x, y, { series: trial.isWinner ? 2 : trial.isDefault ? 1 : 0,
  kind: trial.isWinner ? "" : "hollow", w, trial, tip: trialTip(trial), size: trial.isWinner ? 1.45 : 1 });
const trialLegend = () => [legendMark("winner", 2), legendMark("the model's first choice", 1, "hollow"),
  legendMark("other", 0, "hollow")];
const inOrder = (trials) => [...trials].sort((a, b) => a.isWinner - b.isWinner || a.isDefault - b.isDefault);

function scatterFigure(id, title, w, { of, x, note, edge }) {
  const trials = w.tuning.trials.filter((trial) => of(trial) > 0);
  if (trials.length < 2) return null;
  const p = plot({ x: axis({ values: [...trials.map(of), ...(edge ? [edge.at] : [])], ...x }),
                   y: axis({ values: trials.map((trial) => trial.us), kind: "log", label: "measured µs",
                     format: Number }) });
  if (edge) p.over.append(svg("path", { class: "edge", d: `M${p.px(edge.at)} ${p.top}V${p.bottom}` }),
    svg("text", { class: "soft", x: p.px(edge.at) + 5, y: p.top + 10 }, edge.words));
  for (const trial of inOrder(trials)) p.over.append(trialMark(p, p.px(of(trial)), p.py(trial.us), w, trial));
  return figure(id, title, p.root, { note, legend: trialLegend() });
}

function predictedFigure(w) {
  const trials = w.tuning.trials.filter((trial) => trial.predicted > 0);
  if (trials.length < 2) return null;
  const times = trials.flatMap((trial) => [trial.us, trial.predicted]);
  const range = { from: Math.min(...times) / 1.1, to: Math.max(...times) * 1.1 };
  const p = plot({ x: axis({ values: times, kind: "log", label: "predicted µs", format: Number, ...range }),
                   y: axis({ values: times, kind: "log", label: "measured µs", format: Number, ...range }) });
  p.over.append(svg("path",
    { class: "edge", d: `M${p.px(range.from)} ${p.py(range.from)}L${p.px(range.to)} ${p.py(range.to)}` }));
  for (const trial of inOrder(trials)) p.over.append(trialMark(p, p.px(trial.predicted), p.py(trial.us), w, trial));
  return figure("problem-predicted", "Predicted against measured", p.root,
    { legend: [...trialLegend(), legendLine("as predicted", "edge")] });
}

/** Best so far over the candidates in the order of measuring; where a cache has none, in the model's order. */
function searchFigure(w) {
  const isRecorded = w.tuning.trials.every((trial) => trial.sequence > 0);
  const trials = w.tuning.trials.filter((trial) => isRecorded || trial.predicted > 0)
    .sort((a, b) => (isRecorded ? a.sequence - b.sequence : a.predicted - b.predicted));
  if (trials.length < 2) return null;
  const place = (i) => (isRecorded ? trials[i].sequence : i + 1), last = place(trials.length - 1);
  const p = plot({ x: axis({ values: [1, last], kind: "linear", from: 1, format: String,
                     label: isRecorded ? "measured candidates, in the order of measuring"
                       : "measured candidates, in the model's order" }),
                   y: axis({ values: trials.map((trial) => trial.us), kind: "log", label: "µs", format: Number }) });
  let best = Infinity, d = "";
  trials.forEach((trial, i) => {
    const before = best;
    best = Math.min(best, trial.us);
    d += i === 0 ? `M${p.px(place(0))} ${p.py(best)}` : `H${p.px(place(i)).toFixed(1)}` +
      (best < before ? `V${p.py(best).toFixed(1)}` : "");
  });
  p.over.append(svg("path", { class: "path s0", d }));
  trials.forEach((trial, i) => p.over.append(trialMark(p, p.px(place(i)), p.py(trial.us), w, trial)));
  const won = trials.findIndex((trial) => trial.isWinner);
  const where = won >= 0 ? `the winner is number ${place(won)} of ${last}.` : "the winner is not among them.";
  return figure("problem-search", "The search: best so far", p.root,
    { legend: [legendLine("best so far", "path s0"), ...trialLegend()],
    note: isRecorded ? `In the order of measuring, ${where}`
      : `Order not recorded: an earlier Hone wrote this tuning. In the order of the model's predictions, ${where}` });
}

/** For each parameter, the best time of each of its values. */
function valuesFigure(w) {
  const effects = effectsOf(w);
  const space = (familyOf(w) || { parameters: [] }).parameters;
  const listed = effects.map((effect) => {
    const known = (space.find(([name]) => name === effect.name) || [null, true, []])[2];
    const values = known.map((value) => effect.values.find((each) => each.value === value) ||
      { value, best: null, count: 0 });
    for (const each of effect.values) if (!known.includes(each.value)) values.push(each);
    const isNumber = values.every(({ value }) => /^\d+$/.test(value));
    return { ...effect, values: isNumber ? values.sort((a, b) => a.value - b.value) : values };
  }).filter((effect) => effect.values.length > 1);
  if (!listed.length) return null;
  const width = 1080, left = 130, rowHeight = 40, top = 18, won = new Map(parametersOf(w.policy));
  const root = svg("svg", { class: "figure", viewBox: `0 0 ${width} ${top + rowHeight * listed.length}`, width,
                            height: top + rowHeight * listed.length, role: "img",
                              "aria-label": "best time of each value" });
  root.append(svg("text", { class: "soft", x: left, y: 10 },
    "the fastest candidate with each value: how much longer it takes than the winner"));
  const cap = Math.max(0.05, ...listed.map((each) => Math.min(each.worst, 3)));
  listed.forEach((effect, r) => {
    const y = top + rowHeight * r, step = (width - left) / effect.values.length;
    root.append(svg("text", { class: r ? "" : "name", x: left - 12, y: y + 17, "text-anchor": "end" }, effect.name));
    effect.values.forEach(({ value, best, count }, i) => {
      const x = left + step * i, room = step - 14;
      const cost = best ? Math.max(best.us / w.us - 1, 0) : 0, isBest = best && value === won.get(effect.name);
      const words = svg("text", { x, y: y + 14, class: isBest ? "name" : best ? "" : "soft" },
        `${value}  `, svg("tspan", { class: "soft" }, isBest ? "won" : best ? costText(cost) : "not measured"));
      if (!best) return root.append(words);
      root.append(svg("a", { href: address({ w: w.key, t: best.rank }), tabindex: -1,
                             "data-tip": `${effect.name}=${value}: ${countText(count, "candidate")}, the best:\n` +
                               trialTip(best) },
        words, svg("rect", { class: "bar other", x, y: y + 19, width: room, height: 5, rx: 2, opacity: .35 }),
        svg("rect", { class: "bar", x, y: y + 19, width: Math.max(2, room * Math.min(1, cost / cap)), height: 5,
          rx: 2 })));
    });
  });
  return figure("problem-values", "What each parameter is worth", root, { scroll: true });
}

/** Where the time goes by the roofline's parts. */
function limitNodes(w) {
  const { limit } = w.tuning, device = w.p.device;
  const launch = Math.max(0, limit.roofline - limit.memory), rest = Math.max(0, w.us - limit.roofline);
  const restName = limit.name === "latency" ? "latency" : "arithmetic";
  const parts = [["memory at the read ceiling", "memory", Math.min(limit.memory, w.us)], ["launch", "launch", launch],
                 [limit.name === "latency" ? "beyond the roofline: latency" : "beyond the roofline", restName, rest]];
  const inFlight = w.won ? w.won.inFlight : 0;
  const words = {
    "memory bandwidth": "Memory bandwidth is the limit: moving the bytes at the read ceiling takes most of the time.",
    launch: "The launch is the limit: a kernel that does nothing takes most of the time.",
    latency: "Latency is the limit: too few bytes are in flight, too few SMs have a block, or the call ends before " +
      "the pipeline of loads is full.",
    "arithmetic and issue": "Neither memory nor launching takes most of the time, and enough bytes are in flight: " +
      "arithmetic and issue are the limit.",
  }[limit.name];
  const fact = (name, value) => (value ? el("div", {}, el("dt", {}, name), el("dd", {}, value)) : null);
  return [el("p", { id: "problem-limit" }, words), stack(parts, parts.reduce((sum, each) => sum + each[2], 0)),
    stackKey(parts.filter((each) => each[2] > .004 * w.us).map(([name, className, us]) =>
      [`${name} ${usText(us)} µs`, className])),
    el("dl", { class: "facts" }, fact("time", `${usText(w.us)} µs ± ${usText(w.spread)}`),
      fact("bandwidth", gbpsText(w.gbps) + " GB/s"),
      fact("roofline", `${usText(limit.roofline)} µs: ${percentText(limit.roofline / w.us)}`),
      fact("grid", limit.blocks ? countText(limit.blocks, "block") + (w.blocks > 2 ** 30 ? ", one per tile" : "") : ""),
      fact("waves", !limit.blocks || !limit.slots ? "" : limit.blocks < limit.slots
        ? `less than one: ${limit.slots} blocks are resident`
        : `${Number((limit.blocks / limit.slots).toPrecision(3))} of ${limit.slots} blocks`),
      fact("in flight per SM", inFlight ? bytesText(inFlight) +
        (device.needed_bytes ? ` of ${bytesText(device.needed_bytes)} needed` : "") : ""),
      fact("occupancy", percentText(w.won ? w.won.occupancy : 0)), fact("registers per thread", w.registers || ""),
      fact("spilled per thread", w.local ? w.local + " B" : ""), fact("candidates measured", w.tuning.measured),
      fact("compiling, measuring",
        `${(w.tuning.compileMs / 1000).toFixed(2)} s, ${(w.tuning.measureMs / 1000).toFixed(2)} s` +
        (w.tuning.spent ? ", budget spent" : "")))];
}

function trialTable(w) {
  const columns = [["#", "rank"], ["candidate", null], ["blocks", "blocks"], ["regs", "registers"],
    ["occupancy", "occupancy"],
                   ["in flight/SM", "inFlight"], ["predicted µs", "predicted"], ["µs", "us"], ["± µs", "spread"],
                     ["gap", "us"],
                   ["samples", "samples"], ["note", null]];
  const chosen = state.t === undefined ? -1 : Number(state.t), few = 12;
  const body = el("tbody");
  const rows = (trials) =>
    trials.map((trial) => el("tr", { id: "trial-" + trial.rank, class: [trial.rank === chosen ? "chosen" : "",
      trial.isWinner ? "winner" : ""].join(" ").trim() || null },
    [trial.rank + 1].map((value) => el("td", { class: "number" }, value)), el("td", { class: "wide mono" },
      shortPolicy(trial.policy)),
    [blocksText(trial.blocks), trial.registers || "–", percentText(trial.occupancy),
      trial.inFlight ? bytesText(trial.inFlight) : "–",
     usText(trial.predicted), usText(trial.us), usText(trial.spread),
       trial.isWinner ? "" : costText(trial.us / w.us - 1), trial.samples]
      .map((value) => el("td", { class: "number" }, value)),
    el("td", { class: "wide" }, [trial.isWinner ? "winner" : "", trial.isDefault ? "the model's first choice" : "",
      trial.reason]
      .filter(Boolean).join("; "))));
  let order = [...w.tuning.trials], all = chosen >= few || order.length <= few + 3;
  const more = el("button", { class: "more", type: "button", onclick: () => { all = true; show(); } },
    `Show all ${order.length}`);
  const show = () => { body.replaceChildren(...rows(all ? order : order.slice(0, few)).flat()); more.hidden = all; };
  show();
  const sort = (column) => { order = [...order].sort((a, b) => a[column] - b[column]); show(); };
  return [el("div", { class: "table" },
    el("table", { id: "trials" }, el("thead", {}, el("tr", {}, columns.map(([name, column]) =>
    el("th", { class: column ? "number" : null },
      column ? el("button", { type: "button", title: "sort", onclick: () => sort(column) }, name) : name)))),
    body)), more];
}

/** What to show where the reader has not chosen: many candidates tell more, but not where the launch decides alone. */
const worthOf = (w) => w.tuning.trials.length * (w.tuning.limit.name === "launch" ? .1 : 1);

function problemSection(shown) {
  const chosen = state.w !== undefined ? byKey.get(state.w) : null;
  const w = (chosen && measuredBy(chosen)) || chosen ||
    shown.filter((each) => each.tuning).reduce((a, b) => (!a || worthOf(b) > worthOf(a) ? b : a), null);
  if (!w) return state.w === undefined ? null
    : section("problem", "One problem", `This report has no winner ${clean(state.w)}.`);
  const title = `${w.p.label}, n = ${shapeText(w)}`;
  const lead = `Winner ${w.key} on ${w.p.device.label}; it serves n = ${servesText(w)}. ` +
    "Choose another by any point or cell above.";
  const policy = el("ul", { class: "chips" }, parametersOf(w.policy).map(([name, value]) => el("li", {}, name + " ",
    el("b", {}, value))));
  if (!w.tuning) {
    const why = w.how === "tuned"
      ? "The report has no trials of it: they were evicted, damaged, or there was no room for them."
      : w.how === "lent" ? "It was measured at another size, whose winner is not in this report."
      : "It was never measured: " + (w.how === "nearest" ? "it is the winner of the nearest class."
        : "it is the model's first choice.");
    return section("problem", title, lead, policy,
      el("p", {}, why + (w.us > 0 ? ` It takes ${usText(w.us)} µs, ${gbpsText(w.gbps)} GB/s.` : "")));
  }
  const needed = w.p.device.needed_bytes;
  return section("problem", title, lead, policy, limitNodes(w),
    el("div", { class: "figures full" }, valuesFigure(w)),
    el("div", { class: "figures", style: "margin-top: 20px" }, searchFigure(w), predictedFigure(w),
      scatterFigure("problem-occupancy", "Time against occupancy", w, { of: (trial) => trial.occupancy,
        x: { label: "occupancy", format: (share) => (100 * share).toFixed(0) + " %", from: 0, to: 1.04 } }),
      scatterFigure("problem-flight", "Time against bytes in flight", w, { of: (trial) => trial.inFlight,
        x: { kind: "octaves", label: "bytes in flight per SM", format: bytesText },
        edge: needed > 0 ? { at: needed, words: "needed" } : null }),
      barFigure("problem-rejected", "Not measured, by reason",
        w.tuning.rejected.map((each) => [reasonText(each), each.count])
        .sort((a, b) => b[1] - a[1]))),
    el("h3", { style: "margin: 18px 0 6px" }, "Measured candidates"),
    w.tuning.trials.length < w.tuning.measured ? el("p", { class: "soft" },
      `${w.tuning.trials.length} of ${w.tuning.measured}: the ` +
      "fastest, the fastest with each value of each parameter, and a sample of the others.") : null, trialTable(w));
}

/** Every winner as text: for those who want figures, and who do not see the others. */
function winnerSection(shown) {
  const columns = [["id", (w) => w.id], ["problem", null], ["serves n", (w) => w.ranges[0][0]], ["winner", null],
    ["at n", (w) => w.bytes],
                   ["µs", (w) => w.us], ["GB/s", (w) => w.gbps], ["of roofline", shareOfRoofline], ["how", null]];
  const few = 25;
  let order = [...shown].sort((a, b) => (b.us > 0) - (a.us > 0) || a.index - b.index), most = few;
  const body = el("tbody"),
    more = el("button", { class: "more", type: "button", onclick: () => { most += 1000; show(); } });
  const row = (w) => el("tr", { "data-id": w.id, "data-us": w.us, "data-gbps": w.gbps },
    el("td", { class: "number" }, el("a", { href: address({ w: w.key, t: undefined }) }, w.key)),
      el("td", {}, w.p.label),
    el("td", { class: "number" }, servesText(w)), el("td", { class: "wide mono" }, shortPolicy(w.policy)),
    [w.how === "heuristic" ? "–" : shapeText(w), usText(w.us), gbpsText(w.gbps), percentText(shareOfRoofline(w))]
      .map((value) => el("td", { class: "number" }, value)), el("td", {}, w.how));
  const show = () => {
    body.replaceChildren(...order.slice(0, most).map(row));
    more.hidden = most >= order.length;
    more.textContent = `Show ${Math.min(1000, order.length - most)} more`;
  };
  show();
  let last = null;
  const sort = (of) => {
    const sign = last === of ? -1 : 1;
    last = sign === 1 ? of : null;
    order = [...order].sort((a, b) => sign * (of(a) - of(b)));
    show();
  };
  return section("winners", "All winners", `${countText(shown.length, "winner")}; hone inspect prints the same.`,
    el("div", { class: "table" }, el("table", { id: "winner-table" },
      el("thead", {}, el("tr", {}, columns.map(([name, of]) =>
      el("th", { class: of ? "number" : null },
        of ? el("button", { type: "button", title: "sort", onclick: () => sort(of) }, name) : name)))),
      body)), more);
}
