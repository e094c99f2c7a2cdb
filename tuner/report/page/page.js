// The page: reads the choice out of the address, draws the sections, and follows clicks.
function readAddress() {
  const text = location.hash.slice(1);
  if (text && !text.includes("=")) return false;  // the name of a section
  state = {};
  for (const part of text.split("&")) {
    const [name, value] = part.split("=");
    if (!name || value === undefined) continue;
    try {
      state[name] = decodeURIComponent(value);
    } catch {
      state[name] = value;
    }
  }
  return true;
}
const go = (changes) => { location.hash = address(changes); };

function drawFilters() {
  const bar = document.getElementById("filters");
  const selects = FILTERS.map((filter) => {
    const others = winners.filter((w) => FILTERS.every((each) => each === filter || !state[each.name] ||
      state[each.name] === each.of(w)));
    const counts = [...groupBy(others, filter.of)].sort((a, b) => (a[0] < b[0] ? -1 : 1));
    if (new Set(winners.map(filter.of)).size < 2) return null;
    return el("label", {}, filter.label, el("select", { id: "filter-" + filter.name,
        onchange: (event) => go({ [filter.name]: event.target.value, w: undefined, t: undefined }) },
      el("option", { value: "" }, "all"),
      counts.map(([value, of]) => el("option", { value, selected: state[filter.name] === value },
        `${value} (${of.length})`))));
  });
  const shown = winners.filter(passes);
  bar.replaceChildren(el("div", { class: "inside" }, selects,
    Object.keys(state).length ? el("button",
      { type: "button", id: "reset", onclick: () => go(Object.fromEntries(Object.keys(state)
      .map((name) => [name, undefined]))) }, "Reset") : null,
    el("span", { class: "count", id: "count", "data-count": shown.length },
      `${shown.length} of ${countText(winners.length, "winner")}`)));
}

function draw() {
  const shown = winners.filter(passes);
  drawFilters();
  const main = document.getElementById("main");
  if (!winners.length) {
    main.replaceChildren(el("p", { class: "card empty", id: "empty" },
      "There is no winner to show: the cache is empty, or no winner " +
      "matches the options. hone tune fills it; hone inspect lists what there is."));
    return;
  }
  const sections = [compareSection, answers, deviceSection, bandwidthSection, shapeSection, parameterSection,
    regretSection, modelSection,
                    problemSection, winnerSection];
  main.replaceChildren(...sections.map((each) => each(shown)).flat().filter(Boolean));
  if (!shown.length) main.prepend(el("p", { class: "card empty" }, "No winner passes these filters."));
}

function about() {
  const made = new Date(D.made_at * 1000).toISOString().slice(0, 16).replace("T", " ");
  const caches = D.caches.map((cache, i) => [comparing ? `${"AB"[i]}: ` : "", el("code", {}, clean(cache.path)),
    `, ${countText(cache.shown, "winner")}` + (cache.shown < cache.all ? ` of ${cache.all}` : "") +
    `, the trials of ${cache.shown_tunings}` + (cache.shown_tunings < cache.tunings ? ` of ${cache.tunings}` : "") +
    (cache.damaged ? `, ${cache.damaged} with damaged trials` : "") +
    (cache.damaged_winners ? `, ${countText(cache.damaged_winners, "damaged winner")} left out` : "") + "; "]);
  fill(document.getElementById("about"), {}, [caches, `made ${made} UTC by hone ${clean(D.version)}.`]);
}

/** A tip follows the pointer over whatever has one. */
function followPointer() {
  const tip = document.getElementById("tip");
  const over = (event) => {
    const at = event.target.closest?.("[data-tip]");
    tip.hidden = !at;
    if (!at) return;
    tip.textContent = at.getAttribute("data-tip");
    const box = at.getBoundingClientRect();
    const x = event.clientX ?? box.right, y = event.clientY ?? box.bottom;
    tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = (y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18) + "px";
  };
  document.addEventListener("pointermove", over);
  document.addEventListener("focusin", over);
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
}

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
});
addEventListener("hashchange", () => {
  const before = JSON.stringify([state.w, state.t]);
  if (!readAddress()) return document.getElementById(location.hash.slice(1))?.scrollIntoView();
  const y = scrollY;
  draw();
  const moved = JSON.stringify([state.w, state.t]) !== before && state.w !== undefined;
  if (!moved) return scrollTo(0, y);
  const target = document.getElementById(state.t === undefined ? "problem" : "trial-" + state.t) ||
    document.getElementById("problem");
  target?.scrollIntoView({ block: state.t === undefined ? "start" : "center" });
});
about();
if (!readAddress()) state = {};
draw();
followPointer();
