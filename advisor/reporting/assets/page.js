// The copy buttons, and the what-if panel: it shows numbers of a grid that Python evaluated.

const Grid = (() => {
  "use strict";
  const NUMBERS = ["reward", "low", "high", "stable", "refresh", "tolerance", "fluctuation"];
  const named = (values) => Object.fromEntries(NUMBERS.map((name, at) => [name, values[at]]));

  function load(data) {
    const bytes = Uint8Array.from(atob(data.values), (letter) => letter.charCodeAt(0));
    return { ...data, values: new Float32Array(bytes.buffer), answer: named(data.answer) };
  }

  // Numbers of one configuration; between two learning rates of the grid they are interpolated.
  function at(grid, chosen) {
    const { learning_rate: rates, ...others } = grid.choices;
    const row = Object.entries(others).reduce((row, [name, values]) => row * values.length + values.indexOf(chosen[name]), 0);
    const above = Math.max(1, rates.findIndex((rate) => rate >= chosen.learning_rate));
    const share = Math.log(chosen.learning_rate / rates[above - 1]) / Math.log(rates[above] / rates[above - 1]);
    const values = (place) => grid.values.subarray((row * rates.length + place) * NUMBERS.length, (row * rates.length + place + 1) * NUMBERS.length);
    const [low, high] = [values(above - 1), values(above)];
    const [cost, completions] = grid.prices[row];
    return { ...named(Array.from(low, (value, k) => value * (1 - share) + high[k] * share)), cost, completions };
  }
  return { load, at };
})();

function start() {
  "use strict";
  const byId = (id) => document.getElementById(id);

  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.addEventListener("click", async () => {
      const source = byId(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
      } catch {
        // Some browsers lend no clipboard to a local file: the old way works there.
        const range = document.createRange();
        range.selectNodeContents(source);
        const selection = window.getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        document.execCommand("copy");
      }
      const label = button.textContent;
      button.textContent = "Copied";
      window.setTimeout(() => { button.textContent = label; }, 1500);
    });
  }

  const holder = byId("model");
  if (holder === null) return;
  const grid = Grid.load(JSON.parse(holder.textContent));
  const names = Object.keys(grid.choices), chosen = { ...grid.start };
  const sliders = Object.fromEntries(names.map((name) => [name, byId(`slider-${name}`)]));

  const digits = (value) => {
    if (value !== 0 && Math.abs(value) >= 1e-3 && Math.abs(value) < 1e5) return String(Number(value.toPrecision(3)));
    const [lead, power] = value.toExponential(2).split("e");
    return `${Number(lead)}e${Number(power)}`;
  };
  const percent = (value) => value >= 0.995 ? "over 99 %" : value <= 0.005 ? "under 1 %" : `${Math.round(100 * value)} %`;
  // As in the answer's text: never rounded up to a level that is missed.
  function against(value, level) {
    for (let places = 0; places < 6; places++) {
      const text = (100 * value).toFixed(places);
      if (value >= level || Number(text) < 100 * level - 1e-9) return places === 0 ? percent(value) : `${text} %`;
    }
    return percent(value);
  }
  const shown = (name) => name === "learning_rate" ? digits(chosen[name]) : String(chosen[name]);
  const rangeText = ([low, high]) => low === high ? digits(low) : `${digits(low)} to ${digits(high)}`;
  const outside = (name) => {
    const range = grid.piloted[name];
    return range !== undefined && (chosen[name] < range[0] / 1.001 || chosen[name] > range[1] * 1.001);
  };

  function show() {
    const isStart = names.every((name) => chosen[name] === grid.start[name]);
    const found = { ...Grid.at(grid, chosen), ...(isStart ? grid.answer : {}) };
    for (const name of names) {
      byId(`value-${name}`).value = shown(name);
      byId(`value-${name}`).removeAttribute("aria-invalid");
      sliders[name].setAttribute("aria-valuetext", shown(name));
    }
    const beyond = names.filter(outside), [supported, measured] = grid.lengths, isLong = chosen.planned_steps > supported, notes = [];
    if (beyond.length) {
      const parts = beyond.map((name) => `${grid.words[name]} ${shown(name)} (piloted: ${rangeText(grid.piloted[name])})`);
      notes.push(`Outside what was piloted: ${parts.join(", ")}. Grey numbers are extrapolated.`);
    }
    if (chosen.planned_steps > measured) notes.push("NOT SUPPORTED: longer than was measured elsewhere.");
    else if (isLong) notes.push("Longer than three times the longest pilot: extrapolated.");
    const stable = against(found.stable, grid.level), places = grid.digits;
    if (found.stable < grid.level) notes.push(`Below the ${Number((100 * grid.level).toPrecision(3))} % that was asked for (${stable}).`);
    const texts = {
      reward: found.reward.toFixed(places),
      band: `80 % interval: ${found.low.toFixed(places)} to ${found.high.toFixed(places)}`,
      stable,
      parts: `parts by the model: refresh ${percent(found.refresh)}, learning rate ${percent(found.tolerance)}, fluctuation ${percent(found.fluctuation)}`,
      cost: found.cost,
      completions: `${found.completions}, K = ${chosen.minibatches_per_refresh * grid.epochs}`,
      notes: notes.join(" "),
    };
    for (const [name, text] of Object.entries(texts)) byId(`what-${name}`).textContent = text;
    byId("what-reward").dataset.exact = String(found.reward);
    byId("what-stable").dataset.exact = String(found.stable);
    byId("what-tiles").classList.toggle("extrapolated", beyond.length > 0 || isLong);
    draw(found);
  }

  function element(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const LEFT = 62, TOP = 22, RIGHT = 438, FOOT = 200;
  const scale = (low, high, from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  const place = scale(...grid.ends.map(Math.log), LEFT, RIGHT), x = (rate) => place(Math.log(rate));

  // Axes over the learning rate, what no pilot ran in grey; returns how to add to it.
  function frame(id, title, yLabel, yTicks, y) {
    const svg = byId(id), add = (...given) => svg.append(element(...given));
    svg.replaceChildren(element("title", {}, title));
    add("text", { x: 0, y: 13, class: "head" }, title);
    for (const [value, label] of yTicks) {
      add("line", { x1: LEFT, x2: RIGHT, y1: y(value), y2: y(value), class: "grid" });
      add("text", { x: LEFT - 6, y: y(value) + 4, class: "tick end" }, label);
    }
    for (const [value, label] of grid.rateTicks) {
      add("line", { x1: x(value), x2: x(value), y1: FOOT, y2: FOOT + 4, class: "axis" });
      add("text", { x: x(value), y: FOOT + 17, class: "tick middle" }, label);
    }
    const [from, to] = grid.piloted.learning_rate.map(x), middle = (TOP + FOOT) / 2;
    add("rect", { x: LEFT, y: TOP, width: from - LEFT, height: FOOT - TOP, class: "beyond" });
    add("rect", { x: to, y: TOP, width: RIGHT - to, height: FOOT - TOP, class: "beyond" });
    add("line", { x1: LEFT, x2: RIGHT, y1: FOOT, y2: FOOT, class: "axis" });
    add("text", { x: (LEFT + RIGHT) / 2, y: 236, class: "tick middle" }, "learning rate (grey: not piloted)");
    add("text", { x: 11, y: middle, class: "tick middle", transform: `rotate(-90 11 ${middle})` }, yLabel);
    return add;
  }

  function draw(found) {
    const rates = grid.choices.learning_rate, rate = chosen.learning_rate;
    const rows = rates.map((one) => ({ rate: one, ...Grid.at(grid, { ...chosen, learning_rate: one }) }));
    const points = (name, y, of = rows) => of.map((row) => `${x(row.rate)},${y(row[name])}`);
    let y = scale(...grid.bounds, FOOT, TOP);
    let add = frame("what-curve", "Expected reward of a stable run, and 80 % of runs", grid.measure, grid.rewardTicks, y);
    add("polygon", { points: [...points("high", y), ...points("low", y, [...rows].reverse())].join(" "), class: "band" });
    add("polyline", { points: points("reward", y).join(" "), class: "line" });
    add("circle", { cx: x(rate), cy: y(found.reward), r: 5, class: "dot" });
    y = scale(0, 1, FOOT, TOP);
    add = frame("what-risk", "P(stable)", "P(stable)", [0, 0.25, 0.5, 0.75, 1].map((q) => [q, `${100 * q} %`]), y);
    add("line", { x1: LEFT, x2: RIGHT, y1: y(grid.level), y2: y(grid.level), class: "level" });
    add("polyline", { points: points("stable", y).join(" "), class: "line" });
    for (const [one, lived] of grid.pilots) {
      if (lived) add("circle", { cx: x(one), cy: FOOT, r: 3.5, class: "pilot" });
      else add("path", { d: `M${x(one) - 3.5} ${FOOT - 3.5}l7 7m0 -7l-7 7`, class: "dead" });
    }
    add("circle", { cx: x(rate), cy: y(found.stable), r: 5, class: "dot" });
  }

  // Any learning rate within the grid can be typed; of the other settings those that it holds.
  function type(name) {
    const field = byId(`value-${name}`), value = Number(field.value.replaceAll(",", "")), offered = grid.choices[name];
    const [low, high] = [offered[0], offered[offered.length - 1]];
    if (name === "learning_rate" ? !(value >= low && value <= high) : !offered.includes(value)) {
      field.setAttribute("aria-invalid", "true");
      const wanted = name === "learning_rate" ? rangeText([low, high]) : `one of ${offered.join(", ")}`;
      byId("what-notes").textContent = `'${field.value}' cannot be shown: give ${wanted}, or ask advisor what-if.`;
      return;
    }
    // What the field shows is rounded: leaving it as it is changes nothing.
    if (field.value === shown(name)) return;
    chosen[name] = value;
    const far = offered.map((one) => Math.abs(Math.log(one / value)));
    sliders[name].value = String(far.indexOf(Math.min(...far)));
    show();
  }

  function reset() {
    Object.assign(chosen, grid.start);
    for (const name of names) sliders[name].value = String(grid.choices[name].indexOf(chosen[name]));
    show();
  }
  for (const name of names) {
    sliders[name].addEventListener("input", () => {
      chosen[name] = grid.choices[name][Number(sliders[name].value)];
      show();
    });
    byId(`value-${name}`).addEventListener("change", () => type(name));
  }
  byId("what-reset").addEventListener("click", reset);
  reset();
}

if (typeof module === "undefined") start();
else module.exports = Grid;
