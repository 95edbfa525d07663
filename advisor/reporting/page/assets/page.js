// The what-if panel and the copy buttons of the report.

(() => {
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
      const said = button.textContent;
      button.textContent = "Copied";
      window.setTimeout(() => { button.textContent = said; }, 1500);
    });
  }

  const holder = byId("model");
  if (holder === null) return;
  const model = Forecast.load(JSON.parse(holder.textContent));
  const start = { ...model.base, planned_steps: model.advised.steps, parameters: model.parameters };
  const names = Object.keys(model.choices);
  const sliders = Object.fromEntries(names.map((name) => [name, byId(`slider-${name}`)]));

  const digits = (value) => {
    if (value === 0) return "0";
    if (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3) {
      const [lead, power] = value.toExponential(2).split("e");
      return `${Number(lead)}e${Number(power)}`;
    }
    return String(Number(value.toPrecision(3)));
  };
  const whole = (value) => Math.round(value).toLocaleString("en-US");
  const percent = (value) => value >= 0.995 ? "over 99 %" : value <= 0.005 ? "under 1 %" : `${Math.round(100 * value)} %`;
  // As advisor.advice.wording: never rounded up to a level that is missed.
  function against(value, level) {
    for (let places = 0; places < 6; places++) {
      const said = (100 * value).toFixed(places);
      if (value >= level || Number(said) < 100 * level - 1e-9) return places === 0 ? percent(value) : `${said} %`;
    }
    return percent(value);
  }
  const level = `${Number((100 * model.advised.level).toPrecision(3))} %`;
  function gpuTime(hours) {
    const [unit, factor] = hours >= 0.1 ? ["GPU-hours", 1] : hours >= 1 / 60 ? ["GPU-minutes", 60] : ["GPU-seconds", 3600];
    const number = hours * factor;
    return `${number >= 100 ? whole(number) : String(Number(number.toPrecision(3)))} ${unit}`;
  }

  const WORDS = {
    learning_rate: "learning rate", group_size: "group size", minibatches_per_refresh: "mini-batches per refresh",
    epochs_per_refresh: "epochs per refresh", prompts_per_step: "prompts per step", lag: "lag", parameters: "model size",
  };
  // Of these the page holds a table, so that only what is offered can be chosen.
  const TABLED = ["minibatches_per_refresh", "epochs_per_refresh", "lag"];
  const COUNTED = ["group_size", "planned_steps"];
  const chosen = { ...start };
  const isStart = () => names.every((name) => chosen[name] === start[name]);
  const shown = (name) => COUNTED.includes(name) || TABLED.includes(name) ? String(chosen[name]) : digits(chosen[name]);
  const rangeText = ([low, high]) => low === high ? digits(low) : `${digits(low)} to ${digits(high)}`;
  const outside = (name) => {
    const range = model.piloted[name];
    return range !== undefined && (chosen[name] < range[0] / 1.001 || chosen[name] > range[1] * 1.001);
  };

  function show() {
    const steps = chosen.planned_steps, times = [];
    for (let k = 0; k <= 48; k++) times.push(Math.round(steps * (k / 48) ** 2));
    const found = Forecast.evaluate(model, chosen, [...new Set(times)]);
    for (const name of names) {
      byId(`value-${name}`).value = shown(name);
      byId(`value-${name}`).removeAttribute("aria-invalid");
      sliders[name].setAttribute("aria-valuetext", shown(name));
    }
    const interval = chosen.minibatches_per_refresh * chosen.epochs_per_refresh;
    const beyond = names.filter(outside), notes = [];
    if (beyond.length) {
      const told = beyond.map((name) => `${WORDS[name]} ${shown(name)} (piloted: ${rangeText(model.piloted[name])})`);
      notes.push(`Outside what was piloted: ${told.join(", ")}. Grey numbers are the prior's word there.`);
    }
    if (!found.supported) notes.push("Longer than three times the longest pilot: not supported by these pilots.");
    if (chosen.parameters !== model.parameters) {
      notes.push(model.sizes > 1
        ? `Another model size: extrapolated by exponents that ${model.sizes} piloted sizes told.`
        : "Another model size: extrapolated by the prior's exponents, since pilots ran one size.");
    }
    // The start is the answer itself, whose numbers come from all draws.
    const own = isStart() ? model.advised : null;
    const least = own === null ? found.least : own.least, stable = own === null ? found.stable : own.stable;
    if (least < model.advised.level) notes.push(`Below the ${level} that was asked for (${against(least, model.advised.level)}).`);
    const [low, high] = own === null ? [found.rewardLow, found.rewardHigh] : [own.rewardLow, own.rewardHigh];
    const places = own === null ? 2 : 3;
    byId("what-reward").textContent = (own === null ? found.reward : own.reward).toFixed(places);
    byId("what-reward").dataset.exact = String(found.reward);
    byId("what-band").textContent = `80 % of runs: ${low.toFixed(places)} to ${high.toFixed(places)}`;
    byId("what-stable").textContent = against(stable, model.advised.level);
    byId("what-stable").dataset.exact = String(found.stable);
    const parts = own === null ? found : own, alone = against(least, model.advised.level);
    const decides = alone === against(stable, model.advised.level) ? "" : `the model alone says ${alone}, and that decides: `;
    byId("what-parts").textContent = `${decides}refresh ${percent(parts.refresh)}, learning rate ${percent(parts.tolerance)}, fluctuation ${percent(parts.fluctuation)}`;
    byId("what-cost").textContent = found.gpuHours === null ? `${whole(found.completions)} completions` : gpuTime(found.gpuHours);
    byId("what-completions").textContent = `${whole(found.completions)} completions, K = ${interval}`;
    byId("what-notes").textContent = notes.join(" ");
    byId("what-tiles").classList.toggle("extrapolated", beyond.length > 0 || !found.supported);
    draw(found, least);
  }

  const SVG = "http://www.w3.org/2000/svg";
  function element(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const BOX = { left: 62, right: 22, top: 22, bottom: 40, width: 460, height: 240 };
  // Ticks at round numbers: 1, 2 or 5 times a power of ten apart.
  function roundTicks(low, high, most = 6) {
    const rough = (high - low || 1) / most, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5, 10].find((lead) => lead * power >= rough) || 10);
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(Number((k * step).toPrecision(12)));
    return ticks;
  }
  function rateTicks(low, high) {
    const found = [], span = Math.log10(high / low);
    const leads = span > 3.2 ? [1] : span > 1.5 ? [1, 3] : span > 0.6 ? [1, 2, 3, 5] : [1, 1.5, 2, 3, 5, 7];
    for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++) {
      for (const lead of leads) {
        const rate = Number(`${lead}e${p}`);
        if (rate >= low && rate <= high) found.push(rate);
      }
    }
    return found;
  }
  function frame(svg, title, xLabel, yLabel, xTicks, yTicks, x, y) {
    svg.replaceChildren(element("title", {}, title));
    svg.append(element("text", { x: 0, y: 13, class: "head" }, title));
    const foot = BOX.height - BOX.bottom, end = BOX.width - BOX.right;
    for (const [value, label] of yTicks) {
      svg.append(element("line", { x1: BOX.left, x2: end, y1: y(value), y2: y(value), class: "grid" }));
      svg.append(element("text", { x: BOX.left - 6, y: y(value) + 4, class: "tick end" }, label));
    }
    for (const [value, label] of xTicks) {
      svg.append(element("line", { x1: x(value), x2: x(value), y1: foot, y2: foot + 4, class: "axis" }));
      svg.append(element("text", { x: x(value), y: foot + 17, class: "tick middle" }, label));
    }
    svg.append(element("line", { x1: BOX.left, x2: end, y1: foot, y2: foot, class: "axis" }));
    svg.append(element("text", { x: (BOX.left + end) / 2, y: BOX.height - 4, class: "tick middle" }, xLabel));
    const middle = (BOX.top + foot) / 2;
    svg.append(element("text", { x: 11, y: middle, class: "tick middle", transform: `rotate(-90 11 ${middle})` }, yLabel));
  }
  const scale = (low, high, from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);

  function draw(found, least) {
    const b = model.bounds;
    const [floor, ceiling] = b.isEvaluated ? [b.evalFloor, b.evalCeiling] : [b.floor, b.ceiling];
    const steps = chosen.planned_steps, foot = BOX.height - BOX.bottom, end = BOX.width - BOX.right;
    let x = scale(0, steps, BOX.left, end);
    let y = scale(floor, ceiling, foot, BOX.top);
    const curve = byId("what-curve");
    frame(curve, "Expected curve of a stable run, and 80 % of runs", "optimizer step", model.advised.measure,
      roundTicks(0, steps).map((v) => [v, whole(v)]), roundTicks(floor, ceiling, 5).map((v) => [v, digits(v)]), x, y);
    const supported = model.constants.supported;
    if (steps > supported) {
      curve.append(element("rect", { x: x(supported), y: BOX.top, width: end - x(supported), height: foot - BOX.top, class: "beyond" }));
    }
    const points = found.curve;
    const band = [...points.map((p) => `${x(p.step)},${y(p.high)}`), ...points.slice().reverse().map((p) => `${x(p.step)},${y(p.low)}`)];
    curve.append(element("polygon", { points: band.join(" "), class: "band" }));
    curve.append(element("polyline", { points: points.map((p) => `${x(p.step)},${y(p.mean)}`).join(" "), class: "line" }));

    const offered = model.choices.learning_rate, rate = chosen.learning_rate;
    const known = model.pilots.map(([one]) => one);
    const lowest = Math.min(offered[0], rate, ...known), highest = Math.max(offered[offered.length - 1], rate, ...known);
    const every = Math.max(1, Math.floor(offered.length / 22));
    const rates = [...new Set([...offered.filter((one, at) => at % every === 0 || at === offered.length - 1), ...known, rate])].sort((p, q) => p - q);
    const risk = rates.map((one) => [one, one === rate ? least : Forecast.evaluate(model, { ...chosen, learning_rate: one }).least]);
    x = scale(Math.log(lowest), Math.log(highest), BOX.left, end);
    y = scale(0, 1, foot, BOX.top);
    const stable = byId("what-risk");
    frame(stable, "P(stable) that decides, by learning rate", "learning rate (grey: not piloted)", "P(stable)",
      rateTicks(lowest, highest).map((one) => [Math.log(one), digits(one)]),
      [0, 0.25, 0.5, 0.75, 1].map((q) => [q, `${100 * q} %`]), x, y);
    const [from, to] = model.piloted.learning_rate.map((one) => x(Math.log(Math.min(highest, Math.max(lowest, one)))));
    for (const [left, right] of [[BOX.left, from], [to, end]]) {
      if (right > left) stable.append(element("rect", { x: left, y: BOX.top, width: right - left, height: foot - BOX.top, class: "beyond" }));
    }
    stable.append(element("line", { x1: BOX.left, x2: end, y1: y(model.advised.level), y2: y(model.advised.level), class: "level" }));
    stable.append(element("polyline", { points: risk.map(([one, value]) => `${x(Math.log(one))},${y(value)}`).join(" "), class: "line" }));
    for (const [one, lived] of model.pilots) {
      const at = x(Math.log(one));
      stable.append(lived ? element("circle", { cx: at, cy: foot, r: 3.5, class: "pilot" })
        : element("path", { d: `M${at - 3.5} ${foot - 3.5}l7 7m0 -7l-7 7`, class: "dead" }));
    }
    stable.append(element("circle", { cx: x(Math.log(rate)), cy: y(least), r: 5, class: "dot" }));
  }

  const nearest = (name) => {
    const values = model.choices[name], far = values.map((value) => Math.abs(Math.log((value + 1e-12) / (chosen[name] + 1e-12))));
    return far.indexOf(Math.min(...far));
  };
  // A typed value counts as it stands where that can be; the slider goes to the choice next to it.
  function type(name) {
    const field = byId(`value-${name}`), value = Number(field.value.replaceAll(",", ""));
    const isWhole = COUNTED.includes(name), least = name === "group_size" ? 2 : isWhole ? 1 : 0;
    const canBe = TABLED.includes(name) ? model.choices[name].includes(value)
      : Number.isFinite(value) && value > 0 && value >= least && value <= 1e14 && (!isWhole || (Number.isInteger(value) && value <= 1e6));
    if (!canBe) {
      field.setAttribute("aria-invalid", "true");
      const wanted = TABLED.includes(name) ? `one of ${model.choices[name].join(", ")}` : isWhole ? `a whole number from ${least}` : "a positive number";
      byId("what-notes").textContent = `'${field.value}' cannot be: give ${wanted}.`;
      return;
    }
    // What the field shows is rounded: leaving it as it is changes nothing.
    if (field.value === shown(name)) return;
    chosen[name] = value;
    sliders[name].value = String(nearest(name));
    show();
  }

  function reset() {
    Object.assign(chosen, start);
    for (const name of names) sliders[name].value = String(model.choices[name].indexOf(start[name]));
    show();
  }
  for (const name of names) {
    sliders[name].addEventListener("input", () => {
      chosen[name] = model.choices[name][Number(sliders[name].value)];
      show();
    });
    byId(`value-${name}`).addEventListener("change", () => type(name));
  }
  byId("what-reset").addEventListener("click", reset);
  reset();
})();
