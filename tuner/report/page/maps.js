// Heat maps: the share of the ceiling over shapes, and what winners lose at other sizes.
/** A heat map: each cell has its number, and leads to its winner. */
function heatMap(id, title, rows, columns, rowName, columnName, cellOf, { measure, note, left = 64, axes }) {
  const size = { w: 46, h: 26 }, top = 34;
  const width = left + size.w * columns.length + 10, height = top + size.h * rows.length + 8;
  const root = svg("svg", { class: "figure", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": title });
  root.append(svg("text", { class: "soft", x: left - 8, y: 12, "text-anchor": "end" }, axes[0]),
              svg("text", { class: "soft", x: left, y: 12 }, axes[1]));
  columns.forEach((column, i) => root.append(svg("text", { class: "soft", x: left + size.w * (i + .5), y: top - 6,
    "text-anchor": "middle" }, columnName(column))));
  rows.forEach((row, r) => {
    root.append(svg("text", { x: left - 8, y: top + size.h * (r + .5) + 4, "text-anchor": "end" }, rowName(row)));
    columns.forEach((column, c) => {
      const w = cellOf(row, column);
      if (!w) return;
      const share = Math.min(measure(w), 1.1), lightness = 94 - 64 * Math.min(share, 1);
      root.append(svg("a", { href: address({ w: w.key, t: undefined }), "data-tip": winnerTip(w), tabindex: -1 },
        svg("rect", { class: "cell", x: left + size.w * c, y: top + size.h * r, width: size.w, height: size.h, rx: 4,
                      fill: `hsl(207 62% ${lightness.toFixed(0)}%)` }),
        svg("text", { x: left + size.w * (c + .5), y: top + size.h * (r + .5) + 4, "text-anchor": "middle",
                      style: `fill:${lightness > 60 ? "#10151a" : "#ffffff"}` }, (100 * measure(w)).toFixed(0))));
    });
  });
  return figure(id, title, root, { scroll: true, note, wide: width > 520 });
}

const octaveOf = (extent) => Math.round(Math.log2(Math.max(extent, 1)));
const sorted = (values) => [...new Set(values)].sort((a, b) => a - b);

function shapeSection(shown) {
  const tuned = shown.filter((w) => w.us > 0);
  if (!tuned.length) return null;
  const ofRoofline = state.share !== "bandwidth", measure = ofRoofline ? shareOfRoofline : shareOfBandwidth;
  const many = new Set(tuned.map((w) => w.p.device)).size > 1;
  const best = (list) => list.reduce((a, b) => (!a || b.bytes > a.bytes ? b : a), null);
  const maps = [];
  for (const [, group] of groupBy(tuned.filter((w) => dimensions(w) === 1), (w) => w.p.device.index + "/" +
    w.p.family)) {
    const rows = [...new Set(group.map((w) => w.p))].sort((a, b) => inWords(a.label, b.label)),
      cells = groupBy(group, (w) => w.p.index + "/" + octaveOf(w.extents[0]));
    const nameOf = (p) => `${p.op} ${p.dtype}` + (p.context === "stream" ? "" : " " + p.context) +
      (p.align === 16 ? "" : " @" + p.align) + unusual(p);
    maps.push(heatMap("shapes-" + maps.length, group[0].p.family + (many ? ` on ${group[0].p.device.label}` : ""), rows,
      sorted(group.map((w) => octaveOf(w.extents[0]))), nameOf, (k) => "2^" + k,
      (p, k) => best(cells.get(p.index + "/" + k) || []),
      { measure, left: 20 + 6.4 * Math.max(...rows.map((p) => nameOf(p).length)), axes: ["", "n"] }));
  }
  for (const [, group] of groupBy(tuned.filter((w) => dimensions(w) > 1), (w) => w.p.index)) {
    const extents = (w) => { const shape = shapeOf(w); return [shape[0], shape[shape.length - 1]]; };
    const cells = groupBy(group, (w) => extents(w).map(octaveOf).join("/"));
    const names = (familyOf(group[0]) || { extents: ["rows", "columns"] }).extents;
    maps.push(heatMap("shapes-" + maps.length, group[0].p.label + (many ? ` on ${group[0].p.device.label}` : ""),
      sorted(group.map((w) => octaveOf(extents(w)[0]))), sorted(group.map((w) => octaveOf(extents(w)[1]))),
      (k) => "2^" + k, (k) => "2^" + k, (r, c) => best(cells.get(r + "/" + c) || []),
      { measure, axes: [names[names.length - 2] + " ↓", names[names.length - 1] + " →"] }));
  }
  const choice = el("select", { id: "share", onchange: (event) => go({ share: event.target.value }) },
    el("option", { value: "", selected: ofRoofline }, "of the roofline"),
    el("option", { value: "bandwidth", selected: !ofRoofline }, "of the read bandwidth"));
  return section("shapes", "Share of the ceiling",
    "Each cell is a tuned winner: the percentage that it reaches. Darker is nearer to the ceiling; above 100 the " +
      "input came from a cache.",
    el("div", { class: "row" }, el("label", {}, "Percentage ", choice)), el("div", { class: "figures wide" }, maps));
}

/** What the winner of one size loses at another: of the sweep with the most tuned sizes, or the chosen one. */
function regretSection(shown) {
  const keyOf = (trial) => trial.policy + "/" + trial.blocks;
  /** How many winners of a sweep were measured at another size, too. */
  const crossings = (group) => {
    const won = new Set(group.map((w) => keyOf(w.won)));
    return group.reduce((sum, w) => sum + w.tuning.trials.filter((trial) => !trial.isWinner &&
      won.has(keyOf(trial))).length, 0);
  };
  const sweeps = [...groupBy(shown.filter((w) => w.won), (w) => w.p.index).values()].filter((group) => group.length > 1)
    .map((group) => ({ group, crossings: crossings(group) })).sort((a, b) => b.crossings - a.crossings ||
      b.group.length - a.group.length)
    .map(({ group }) => group);
  if (!sweeps.length) return null;
  const sweep = sweeps.find((group) => String(group[0].p.index) === state.sweep) || sweeps[0];
  const columns = [...sweep].sort((a, b) => a.bytes - b.bytes).slice(0, 18);
  const rows = [...groupBy(columns, (w) => keyOf(w.won)).values()];
  const size = { w: 50, h: 25 }, left = 370, top = 40;
  const width = left + size.w * columns.length + 10, height = top + size.h * rows.length + 8;
  const root = svg("svg", { class: "figure", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": "regret" });
  root.append(svg("text", { class: "soft", x: left - 8, y: 12, "text-anchor": "end" }, "winner ↓"),
              svg("text", { class: "soft", x: left, y: 12 }, sweep.some((w) => shapeOf(w).length > 1)
                ? "measured at these powers of 2 →" : "measured at n →"));
  columns.forEach((w, c) => root.append(svg("text", { class: "soft", x: left + size.w * (c + .5), y: top - 7,
    "text-anchor": "middle" }, shapeOf(w).length > 1 ? shapeOf(w).map((n) => octaveOf(n)).join("×")
      : sizeText(w.extents[0]))));
  rows.forEach((row, r) => {
    root.append(svg("text", { x: left - 8, y: top + size.h * (r + .5) + 4, "text-anchor": "end" },
      clipped(shortPolicy(row[0].policy), 54) + ", " + blocksText(row[0].blocks)));
    columns.forEach((w, c) => {
      const trial = w.tuning.trials.find((each) => keyOf(each) === keyOf(row[0].won));
      const x = left + size.w * c, y = top + size.h * r;
      if (!trial) return root.append(svg("text", { class: "soft", x: x + size.w / 2, y: y + 17,
        "text-anchor": "middle" }, "·"));
      const best = w.tuning.trials.reduce((a, b) => (b.us < a.us ? b : a)), regret = trial.us / best.us - 1;
      const lightness = 96 - 60 * Math.min(1, Math.log1p(20 * regret) / Math.log1p(20));
      root.append(svg("a", { href: address({ w: w.key, t: trial.rank }), tabindex: -1,
                             "data-tip": shortPolicy(trial.policy) + `\nat n = ${shapeText(w)}: ` +
                                `${usText(trial.us)} µs, ` +
                                `the best ${usText(best.us)}` },
        svg("rect", { class: "cell", x, y, width: size.w, height: size.h, rx: 4,
          fill: `hsl(22 80% ${lightness.toFixed(0)}%)` }),
        trial.isWinner ? svg("rect", { class: "chosen", x: x + 2, y: y + 2, width: size.w - 4, height: size.h - 4,
          rx: 3,
                                       style: `stroke:${lightness > 60 ? "#10151a" : "#fff"}` }) : null,
        svg("text", { x: x + size.w / 2, y: y + 17, "text-anchor": "middle",
          style: `fill:${lightness > 60 ? "#10151a" : "#fff"}` },
          regret < 0.0005 ? "0" : regret >= 1 ? (1 + regret).toFixed(1) +
            "×" : (100 * regret).toFixed(regret < .0995 ? 1 : 0))));
    });
  });
  const choice = el("select", { id: "sweep", onchange: (event) => go({ sweep: event.target.value }) },
    sweeps.map((group) => el("option", { value: group[0].p.index, selected: group === sweep },
      `${group[0].p.label}: ${group.length} sizes` + (devices.length > 1 ? ` on ${group[0].p.device.label}` : ""))));
  return section("regret", "Regret between sizes",
    "How many percent slower the winner of one size is at another, over the fastest candidate there; framed: the one " +
    "that serves it; a dot: never measured there.", el("div", { class: "row" }, el("label", {}, "Sweep ", choice)),
    el("div", { class: "figures full" }, figure("regret-map", sweep[0].p.label, root, { scroll: true, note:
      columns.length < sweep.length ? `The ${columns.length} smallest of ${sweep.length} sizes.` : "" })));
}
