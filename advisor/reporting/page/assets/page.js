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
    if (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3) return value.toExponential(1).replace("e+", "e").replace(".0e", "e");
    return String(Number(value.toPrecision(3)));
  };
  const whole = (value) => Math.round(value).toLocaleString("en-US");
  const percent = (value) => value >= 0.995 ? "over 99 %" : value <= 0.005 ? "under 1 %" : `${Math.round(100 * value)} %`;

  function settings() {
    return Object.fromEntries(names.map((name) => [name, model.choices[name][Number(sliders[name].value)]]));
  }

  function show() {
    const chosen = settings(), steps = chosen.planned_steps, times = [];
    for (let k = 0; k <= 32; k++) times.push(Math.round(steps * (k / 32) ** 2));
    const found = Forecast.evaluate(model, chosen, [...new Set(times)]);
    for (const name of names) {
      const text = ["learning_rate", "parameters", "prompts_per_step"].includes(name) ? digits(chosen[name]) : whole(chosen[name]);
      byId(`value-${name}`).textContent = text;
      sliders[name].setAttribute("aria-valuetext", text);
    }
    const interval = chosen.minibatches_per_refresh * chosen.epochs_per_refresh;
    const notes = [];
    if (!found.supported) notes.push("Longer than three times the longest pilot: not supported by these pilots.");
    if (chosen.parameters !== model.parameters) notes.push("Another model size: extrapolated by the learned size exponents.");
    if (found.least < model.advised.level) notes.push(`Below the ${percent(model.advised.level)} that was asked for.`);
    byId("what-reward").textContent = found.reward.toFixed(3);
    byId("what-reward").dataset.exact = String(found.reward);
    byId("what-band").textContent = `80 % of runs: ${found.rewardLow.toFixed(3)} to ${found.rewardHigh.toFixed(3)}`;
    byId("what-stable").textContent = percent(found.stable);
    byId("what-stable").dataset.exact = String(found.stable);
    byId("what-parts").textContent = `refresh ${percent(found.refresh)}, learning rate ${percent(found.tolerance)}, fluctuation ${percent(found.fluctuation)}`;
    byId("what-cost").textContent = found.gpuHours === null ? whole(found.completions) : `${digits(found.gpuHours)} GPU-hours`;
    byId("what-completions").textContent = `${whole(found.completions)} completions, K = ${interval}`;
    byId("what-notes").textContent = notes.join(" ");
    draw(found, chosen);
  }

  const SVG = "http://www.w3.org/2000/svg";
  function element(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const BOX = { left: 46, right: 12, top: 22, bottom: 34, width: 460, height: 230 };
  function frame(svg, title, xLabel, xTicks, yTicks, x, y) {
    svg.replaceChildren(element("title", {}, title));
    svg.append(element("text", { x: 0, y: 13, class: "head" }, title));
    for (const [value, label] of yTicks) {
      svg.append(element("line", { x1: BOX.left, x2: BOX.width - BOX.right, y1: y(value), y2: y(value), class: "grid" }));
      svg.append(element("text", { x: BOX.left - 6, y: y(value) + 4, class: "tick end" }, label));
    }
    for (const [value, label] of xTicks) {
      svg.append(element("text", { x: x(value), y: BOX.height - BOX.bottom + 15, class: "tick middle" }, label));
    }
    svg.append(element("text", { x: (BOX.left + BOX.width - BOX.right) / 2, y: BOX.height - 3, class: "tick middle" }, xLabel));
  }
  const scale = (low, high, from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);

  function draw(found, chosen) {
    const b = model.bounds;
    const [floor, ceiling] = b.isEvaluated ? [b.evalFloor, b.evalCeiling] : [b.floor, b.ceiling];
    const steps = chosen.planned_steps;
    let x = scale(0, steps, BOX.left, BOX.width - BOX.right);
    let y = scale(floor, ceiling, BOX.height - BOX.bottom, BOX.top);
    const quarter = [0, 0.25, 0.5, 0.75, 1];
    const curve = byId("what-curve");
    frame(curve, `${model.advised.measure} of a stable run, mean and 80 %`, "optimizer step",
      quarter.map((q) => [q * steps, whole(q * steps)]),
      quarter.map((q) => [floor + q * (ceiling - floor), digits(floor + q * (ceiling - floor))]), x, y);
    const points = found.curve;
    const band = [...points.map((p) => `${x(p.step)},${y(p.high)}`), ...points.slice().reverse().map((p) => `${x(p.step)},${y(p.low)}`)];
    curve.append(element("polygon", { points: band.join(" "), class: "band" }));
    curve.append(element("polyline", { points: points.map((p) => `${x(p.step)},${y(p.mean)}`).join(" "), class: "line" }));

    const rates = model.choices.learning_rate;
    const every = Math.max(1, Math.floor(rates.length / 18));
    const shown = rates.filter((rate, at) => at % every === 0 || rate === chosen.learning_rate);
    const risk = shown.map((rate) => [rate, Forecast.evaluate(model, { ...chosen, learning_rate: rate })]);
    x = scale(Math.log(rates[0]), Math.log(rates[rates.length - 1]), BOX.left, BOX.width - BOX.right);
    y = scale(0, 1, BOX.height - BOX.bottom, BOX.top);
    const stable = byId("what-risk");
    const decades = [];
    for (let p = Math.ceil(Math.log10(rates[0])); p <= Math.log10(rates[rates.length - 1]); p++) decades.push(10 ** p);
    frame(stable, "P(stable) that decides, by learning rate, the rest as chosen", "learning rate",
      decades.map((rate) => [Math.log(rate), rate.toExponential(0).replace("e+", "e")]),
      [0, 0.25, 0.5, 0.75, 1].map((q) => [q, `${100 * q} %`]), (v) => x(v), y);
    stable.append(element("line", { x1: BOX.left, x2: BOX.width - BOX.right, y1: y(model.advised.level), y2: y(model.advised.level), class: "level" }));
    stable.append(element("polyline", { points: risk.map(([rate, f]) => `${x(Math.log(rate))},${y(f.least)}`).join(" "), class: "line" }));
    stable.append(element("circle", { cx: x(Math.log(chosen.learning_rate)), cy: y(found.least), r: 5, class: "dot" }));
  }

  function reset() {
    for (const name of names) sliders[name].value = String(model.choices[name].indexOf(start[name]));
    show();
  }
  for (const name of names) sliders[name].addEventListener("input", show);
  byId("what-reset").addEventListener("click", reset);
  reset();
})();
