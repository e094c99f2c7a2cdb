"use strict";
// The data of the page, decoded: caches, devices, problems, winners with their trials. Columns are numbers in a fixed
// order (tuner/report/report_data.cpp); texts stand once, in D.texts. Every text reaches the page as text, never as
// markup.
const D = JSON.parse(document.getElementById("data").textContent);
const HOWS = ["tuned", "lent", "nearest", "heuristic"];
const comparing = D.caches.length > 1;

// Marks that turn the direction of writing would let a name out of a file rearrange what stands around it.
const clean = (text) => String(text).replace(/[\u202a-\u202e\u2066-\u2069]/g, "?");

const devices = D.devices.map((device, index) => {
  const where = comparing ? "AB"[device.cache] + ": " : "";
  return { ...device, index, label: where + clean(device.name) };
});

const problems = D.problems.map(([device, family, op, dtype, numerics, context, align, label], index) => ({
  index, device: devices[device], family: clean(family), op: clean(op), dtype: clean(dtype), numerics: clean(numerics),
  context: clean(context), align,
  label: clean(label).replace(/^(\S+) \1 /, "$1 ") + (align === 16 ? "" : `, align ${align}`),  // "softmax softmax f16"
}));

const winners = D.winners.map((row, index) => {
  const [id, problem, f0, l0, f1, l1, f2, l2, e0, e1, e2, how, policy, blocks, threads, registers, smem, local,
    resident,
    bytes, us, spread, at] = row;
  const p = problems[problem];
  return {
    index, id, p, ranges: [[f0, l0], [f1, l1], [f2, l2]], extents: [e0, e1, e2], how: D.texts[how],
    policy: clean(D.texts[policy]), blocks, threads, registers, smem, local, resident, bytes, us, spread, at,
    gbps: us > 0 ? bytes / us / 1000 : 0, tuning: null, key: (comparing ? "AB"[p.device.cache] : "") + id,
  };
});

for (const [index, measured, spent, compileMs, measureMs, limit, trials, rejected] of D.tunings) {
  const w = winners[index];
  w.tuning = {
    measured, spent, compileMs, measureMs,
    limit: { name: D.texts[limit[0]], roofline: limit[1], memory: limit[2], tiles: limit[3], blocks: limit[4],
             slots: limit[5] },
    rejected: rejected.map(([verdict, reason, count]) => ({ verdict: D.texts[verdict], reason: clean(D.texts[reason]),
                                                            count })),
    trials: trials.map(([policy, blocks, threads, registers, resident, inFlight, predicted, us, spread, samples,
                         sequence, flags, reason], rank) => ({
      rank, policy: clean(D.texts[policy]), blocks, threads, registers, resident, inFlight, predicted, us, spread,
      samples, sequence, isWinner: (flags & 1) !== 0, isDefault: (flags & 2) !== 0,
      reason: reason ? clean(D.texts[reason]) : "",
      occupancy: w.p.device.max_threads_per_sm > 0 ? resident * threads / w.p.device.max_threads_per_sm : 0,
    })),
  };
  w.won = w.tuning.trials.find((trial) => trial.isWinner) || null;
}

const byKey = new Map(winners.map((w) => [w.key, w]));
const extentsKey = (w) => w.p.index + "/" + w.extents.join("x");
const measuredAt = new Map(winners.filter((w) => w.how === "tuned").map((w) => [extentsKey(w), w]));

/** The winner that has the trials of this one: itself, the one that lent it, or none. */
const measuredBy = (w) => (w.how === "tuned" ? w : w.how === "heuristic" ? null : measuredAt.get(extentsKey(w)) ||
  null);

const familyOf = (w) => D.families[w.p.family] || null;
const dimensions = (w) => {
  if (familyOf(w)) return familyOf(w).extents.length;
  return w.extents[2] > 1 ? 3 : w.extents[1] > 1 ? 2 : 1;
};

/** The extents that matter: a batch of one is left out. */
const shapeOf = (w) => {
  const shown = w.extents.slice(0, dimensions(w));
  return shown.length === 3 && shown[0] === 1 ? shown.slice(1) : shown;
};

// Numbers in words, as the commands print them.
const sizeText = (n) => {
  const k = Math.log2(n);
  return n >= 256 && Number.isInteger(k) ? "2^" + k : String(n);
};
const shapeText = (w) => shapeOf(w).map(sizeText).join(" × ");
const usText = (us) => (us <= 0 ? "–" : us.toFixed(us < 100 ? 2 : us < 1000 ? 1 : 0));
const gbpsText = (gbps) => (gbps <= 0 ? "–" : gbps < 0.1 ? gbps.toPrecision(2)
  : gbps.toFixed(gbps < 10 ? 2 : gbps < 100 ? 1 : 0));
const percentText = (share) => (share <= 0 ? "–" : (100 * share).toFixed(share < 0.0995 ? 1 : 0) + " %");
const costText = (cost) => (cost >= 1 ? (1 + cost).toFixed(1) + "×" : "+" +
  (100 * cost).toFixed(cost < 0.1 ? 1 : 0) + " %");
const bytesText = (bytes) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit < units.length - 1; ++unit) bytes /= 1024;
  return (unit === 0 || bytes >= 100 ? bytes.toFixed(0) : bytes.toPrecision(3)) + " " + units[unit];
};
const countText = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;
const rangeText = ([first, last]) => (first === last ? String(first) : `${first}..${last}`);
const servesText = (w) => w.ranges.slice(dimensions(w) === 3 && w.ranges[0][1] === 1 ? 1 : 0,
  dimensions(w)).map(rangeText).join(" × ");
const blocksText = (blocks) => (blocks > 2 ** 30 ? "1/tile" : blocks > 0 ? String(blocks) : "–");
const shortPolicy = (policy) => policy.split(" ").map((item) => {
  const [name, value] = item.split("=");
  if (name === "block_threads") return value + "t";
  if (name === "vector_bytes") return value + "B";
  if (name === "unroll") return "x" + value;
  if (item === "min_blocks=1" || value === undefined) return value === undefined ? item : "";
  return value === "unset" || /^-?\d+$/.test(value) ? item : value;
}).filter(Boolean).join(" ");

const clipped = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

const parametersOf = (policy) => policy.split(" ").map((item) => item.split("=")).filter((pair) => pair.length === 2);

/** The roofline of a winner: what launch and memory take at least. */
function rooflineUs(w) {
  const device = w.p.device;
  const context = device.contexts.find((each) => each.name === w.p.context) || device.contexts[0];
  const memory = device.read_gbps > 0 ? w.bytes / (device.read_gbps * 1000) : 0;
  return Math.max(context.launch_us + memory, context.floor_us);
}
/** True of the winner whose bandwidth is the read ceiling of its device. */
const isCeiling = (w) => w.p.device.read_is_measured && w.gbps >= .9999 * w.p.device.read_gbps;
const shareOfRoofline = (w) => (w.us > 0 ? rooflineUs(w) / w.us : 0);
const shareOfBandwidth = (w) => (w.us > 0 && w.p.device.read_gbps > 0 ? w.gbps / w.p.device.read_gbps : 0);

const geometricMean = (values) => Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
const groupBy = (items, keyOf) => {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
};

/** What the parameters of one problem are worth: the best time of each value that was measured. */
function effectsOf(w) {
  if (w.effects) return w.effects;
  const parameters = new Map();
  for (const trial of w.tuning.trials) {
    for (const [name, value] of parametersOf(trial.policy)) {
      if (!parameters.has(name)) parameters.set(name, new Map());
      const values = parameters.get(name);
      const seen = values.get(value);
      if (!seen) values.set(value, { value, best: trial, count: 1 });
      else {
        ++seen.count;
        if (trial.us < seen.best.us) seen.best = trial;
      }
    }
  }
  w.effects = [...parameters].map(([name, values]) => {
    const sorted = [...values.values()].sort((a, b) => a.best.us - b.best.us);
    const best = sorted[0].best.us;
    return { name, values: sorted, next: sorted.length > 1 ? sorted[1].best.us / best - 1 : 0,
             worst: sorted[sorted.length - 1].best.us / best - 1 };
  }).sort((a, b) => b.worst - a.worst);
  return w.effects;
}

// The reader chose filters, and one winner with one of its trials. The choice stands in the address after the #.
const FILTERS = [
  { name: "device", label: "Device", of: (w) => w.p.device.label },
  { name: "family", label: "Family", of: (w) => w.p.family },
  { name: "op", label: "Operation", of: (w) => w.p.op },
  { name: "dtype", label: "Dtype", of: (w) => w.p.dtype },
  { name: "context", label: "Context", of: (w) => w.p.context },
];
let state = {};
const passes = (w) => FILTERS.every((filter) => !state[filter.name] || state[filter.name] === filter.of(w));
const address = (changes) => {
  const all = Object.entries({ ...state, ...changes }).filter(([, value]) => value !== undefined && value !== "");
  return "#" + all.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
};
