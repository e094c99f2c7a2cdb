// Elements, scales, axes and marks: what all figures are made of.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

// A series has a colour, a marker and a dash; each of the three tells it from the others.
const MARKERS = [
  "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z", "M-3.6 -3.6H3.6V3.6H-3.6Z", "M0 -4.8L4.5 3.4H-4.5Z", "M0 -5L5 0L0 5L-5 0Z",
  "M0 4.8L4.5 -3.4H-4.5Z", "M-4.5 -1.5H-1.5V-4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5Z",
  "M0 -5L1.5 -1.6L5 -1.4L2.3 1L3.2 4.6L0 2.6L-3.2 4.6L-2.3 1L-5 -1.4L-1.5 -1.6Z", "M-4.6 -2H4.6V2H-4.6Z",
];
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2", "12 4", "1 2", "4 4"];
const style = (series) => "s" + (series % 8);

/** A mark that leads to a winner, or to one of its trials: a link. */
function mark(x, y, { series = 0, kind = "", w = null, trial = null, tip = "", size = 1 }) {
  const path = svg("path", {
    class: `mark ${style(series)} ${kind}`, d: MARKERS[series % 8],
    transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` + (size === 1 ? "" : ` scale(${size})`),
  });
  if (!w) return fill(path, { "data-tip": tip }, []);
  const target = address({ w: w.key, t: trial ? trial.rank : undefined });
  return svg("a", { href: target, "data-tip": tip, "aria-label": tip, tabindex: -1 }, path);
}

const linear = (from, to, a, b) => (value) => a + (value - from) / (to - from || 1) * (b - a);

function linearTicks(from, to, most) {
  const raw = (to - from) / most || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw);
  const ticks = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to * (1 + 1e-9); tick += step) ticks.push(tick);
  return ticks;
}
function decades(from, to, coarse) {
  const ticks = [], span = Math.log10(to / from);
  const factors = coarse || span > 2.2 ? [1] : span > 0.9 ? [1, 2, 5] : span > 0.35 ? [1, 1.5, 2, 3, 4, 6, 8]
    : [1, 1.2, 1.4, 1.7, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9];
  for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); ++power) {
    for (const factor of factors) {
      const tick = Number((factor * 10 ** power).toPrecision(3));
      if (tick >= from * (1 - 1e-9) && tick <= to * (1 + 1e-9)) ticks.push(tick);
    }
  }
  return ticks;
}
function octaves(from, to, most) {
  const first = Math.ceil(Math.log2(from) - 1e-9), last = Math.floor(Math.log2(to) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  const ticks = [];
  for (let k = first; k <= last; k += step) ticks.push(2 ** k);
  return ticks;
}

/** An axis: its extent, ticks and the words for them. */
function axis({ values, kind = "linear", label, format, from, to, margin = 0.04, most = 6, coarse = false }) {
  const known = values.filter((value) => Number.isFinite(value) && (kind === "linear" || value > 0));
  let low = from ?? Math.min(...known), high = to ?? Math.max(...known);
  if (!Number.isFinite(low)) [low, high] = kind === "linear" ? [0, 1] : [1, 10];
  if (kind === "linear") {
    if (low === high) high = low + 1;
    if (to === undefined) high += margin * (high - low);
  } else {
    const factor = Math.max((high / low) ** margin, 1.12);
    if (from === undefined) low /= factor;
    if (to === undefined) high *= factor;
  }
  const ticks = kind === "linear" ? linearTicks(low, high, most) : kind === "octaves" ? octaves(low, high, most)
    : decades(low, high, coarse);
  const place = (a, b) => (kind === "linear" ? linear(low, high, a, b)
    : ((scale) => (value) => scale(Math.log(value)))(linear(Math.log(low), Math.log(high), a, b)));
  return { low, high, ticks, label, format: format || String, place };
}

/** An empty plot with axes. `right`: room for the names of series; `below`: room under the axis. */
function plot({ x, y, width = 420, height = 270, left = 50, right = 14, top = 12, below = 0, title }) {
  const bottom = height - (below ? 24 : 36) - below;
  const px = x.place(left, width - right), py = y.place(bottom, top);
  const grid = svg("g", { "aria-hidden": "true" }), under = svg("g"), over = svg("g");
  for (const tick of y.ticks) {
    grid.append(svg("path", { class: "grid", d: `M${left} ${py(tick).toFixed(1)}H${width - right}` }),
                svg("text", { class: "soft", x: left - 6, y: py(tick) + 4, "text-anchor": "end" }, y.format(tick)));
  }
  for (const tick of x.ticks) {
    grid.append(svg("path", { class: "grid", d: `M${px(tick).toFixed(1)} ${bottom}v4` }),
                svg("text", { class: "soft", x: px(tick), y: bottom + 16, "text-anchor": "middle" }, x.format(tick)));
  }
  grid.append(svg("path", { class: "axis", d: `M${left} ${bottom}H${width - right}` }),
              svg("text", { class: "soft", x: width - right, y: bottom + 31, "text-anchor": "end" },
                below ? "" : x.label),
              svg("text", { class: "soft", x: width - right + 8, y: bottom + 16 }, below ? x.label : ""),
              svg("text", { class: "soft", x: left, y: top - 1, "text-anchor": "start" }, y.label));
  const root = svg("svg", { class: "figure", viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
                            "aria-label": title || `${y.label} over ${x.label}` }, under, grid, over);
  return { root, under, over, px, py, left, right: width - right, top, bottom, width };
}

const line = (points, series, kind = "") => svg("path", {
  class: `path ${style(series)} ${kind}`, "stroke-dasharray": DASHES[series % 8] || null,
  d: points.map(([x, y], i) => (i ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1)).join(""),
});

/** Names at the ends of lines, pushed apart so that none covers another. */
function endNames(at, names, x, top, bottom) {
  const sorted = names.map((each) => ({ ...each })).sort((a, b) => a.y - b.y);
  for (let i = 0; i < sorted.length; ++i) {
    sorted[i].y = Math.max(sorted[i].y, i ? sorted[i - 1].y + 13 : top + 4);
  }
  for (let i = sorted.length - 1; i >= 0; --i) {
    sorted[i].y = Math.min(sorted[i].y, i < sorted.length - 1 ? sorted[i + 1].y - 13 : bottom);
  }
  for (const each of sorted) {
    at.append(svg("g", { class: style(each.series) },
      svg("path", { class: "mark " + style(each.series), d: MARKERS[each.series % 8],
                    transform: `translate(${x + 10} ${each.y.toFixed(1)}) scale(.8)` }),
      svg("text", { x: x + 18, y: each.y + 4 }, each.name)));
  }
}

const legendItem = (words, ...drawn) => el("span", {}, svg("svg", { class: "figure", viewBox: "0 0 22 12" },
  ...drawn), words);
const legendMark = (words, series, kind = "") =>
  legendItem(words, svg("path", { class: `mark ${style(series)} ${kind}`, d: MARKERS[series % 8],
    transform: "translate(11 6)" }));
const legendLine = (words, className, dash) =>
  legendItem(words, svg("path", { class: className, d: "M0 6H22", "stroke-dasharray": dash || null }));
const legendBox = (words, className) => legendItem(words,
  svg("rect", { class: className, x: 2, y: 1, width: 18, height: 10 }));

/** A figure with its title, its note, and a button that saves it. */
function figure(id, title, root, { note = "", legend = [], scroll = false, wide = false } = {}) {
  const saved = el("button", { class: "save", type: "button", title: "save this figure as SVG",
                               onclick: () => save(id) }, "SVG");
  return el("figure", { id, class: wide ? "wide" : null },
    el("figcaption", {}, el("h3", {}, title), saved),
    scroll ? el("div", { class: "scroll" }, root) : root,
    legend.length ? el("div", { class: "legend" }, legend) : null,
    note ? el("p", { class: "note" }, note) : null);
}

/** The figure as a file of its own: with title and legend, in both colour schemes. */
function figureText(id) {
  const figureNode = document.getElementById(id);
  const drawn = figureNode.querySelector("svg");
  const [, , width, height] = drawn.getAttribute("viewBox").split(" ").map(Number);
  const items = [...figureNode.querySelectorAll(".legend span")];
  let x = 8, rows = items.length ? 1 : 0;
  const legend = svg("g");
  for (const item of items) {
    const room = 38 + 6 * item.textContent.length;
    if (x + room > width && x > 8) [x, rows] = [8, rows + 1];
    legend.append(svg("g", { transform: `translate(${x} ${height + 30 + 17 * (rows - 1)})` },
      ...[...item.querySelector("svg").childNodes].map((node) => node.cloneNode(true)),
      svg("text", { x: 27, y: 10, class: "soft" }, item.textContent)));
    x += room;
  }
  const total = height + 30 + 17 * rows + (rows ? 6 : 0);
  const body = svg("g", { transform: "translate(0 26)" });
  for (const child of drawn.childNodes) body.append(child.cloneNode(true));
  for (const link of [...body.querySelectorAll("a")]) {
    const group = svg("g", {}, svg("title", {}, link.getAttribute("data-tip")), ...link.childNodes);
    link.replaceWith(group);
  }
  for (const node of body.querySelectorAll("[data-tip]")) node.removeAttribute("data-tip");
  const whole = svg("svg", { class: "figure saved", xmlns: SVG, viewBox: `0 0 ${width} ${total}`, width,
    height: total },
    svg("style", {}, document.getElementById("figure-style").textContent),
    svg("text", { class: "name", x: 8, y: 17, style: "font-size: 13px" }, figureNode.querySelector("h3").textContent),
    body, legend);
  return new XMLSerializer().serializeToString(whole);
}

function save(id) {
  const link = el("a", { href: URL.createObjectURL(new Blob([figureText(id)], { type: "image/svg+xml" })),
                         download: `hone-${id}.svg` });
  link.click();
  URL.revokeObjectURL(link.href);
}
