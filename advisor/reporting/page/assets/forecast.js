// The closed form over posterior draws, as in advisor/posterior and advisor/advice: the page's numbers
// are those of advisor.advice.what_if on the same draws. Pure functions: no page, no clock, no random numbers.

const Forecast = (() => {
  "use strict";

  const clip = (value, [low, high]) => Math.min(Math.max(value, low), high);

  function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Float64Array(bytes.buffer);
  }

  function load(data) {
    const columns = {};
    for (const [name, text] of Object.entries(data.columns)) columns[name] = unpack(text);
    return { ...data, columns };
  }

  // Learning rate of each optimizer step over its peak (dynamics.clock.schedule_factors).
  function factors(base, steps) {
    const planned = base.planned_steps ?? steps;
    const warmup = base.warmup_steps ?? 0;
    const out = new Float64Array(steps);
    for (let done = 0; done < steps; done++) {
      const warm = warmup === 0 ? 1 : Math.min(1, done / warmup);
      let factor = warm;
      if (base.schedule === "linear" || base.schedule === "cosine") {
        const left = clip((planned - done) / Math.max(1, planned - warmup), [0, 1]);
        const cooling = base.schedule === "linear" ? left : 0.5 * (1 - Math.cos(Math.PI * left));
        factor = done < warmup ? warm : cooling;
      }
      out[done] = factor;
    }
    return out;
  }

  // Cubic in the learning-rate exponent for S at each of the times (posterior.equations.clock_polynomial).
  function clockPolynomials(model, rates, times) {
    const { exponents, nodes } = model.clock;
    const sums = exponents.map(() => 0);
    const wanted = new Map(times.map((time, at) => [time, at]));
    const out = new Array(times.length);
    const note = (time) => {
      if (!wanted.has(time)) return;
      out[wanted.get(time)] = [0, 1, 2, 3].map((power) =>
        sums.reduce((total, sum, node) => total + sum * nodes[node][power], 0));
    };
    note(0);
    for (let step = 0; step < rates.length; step++) {
      for (let node = 0; node < exponents.length; node++) sums[node] += rates[step] ** exponents[node];
      note(step + 1);
    }
    return out;
  }

  function inertialTime(model, time, momentum) {
    const safe = Math.max(momentum, model.constants.smallestMomentum);
    return time - (safe * (1 - Math.exp(time * Math.log(safe)))) / (1 - safe);
  }

  function spectrumDecay(model, time, stiffness, damping, momentum, dispersion, onset) {
    const x = Math.max((stiffness / damping) * inertialTime(model, time, momentum), 0) ** onset;
    return Math.exp(-Math.log1p(dispersion * x) / dispersion);
  }

  // dynamics.oscillator.decay from rest.
  function oscillatorDecay(model, time, mass, damping, stiffness) {
    const half = damping / (2 * mass);
    const discriminant = half * half - stiffness / mass;
    const z = time * time * discriminant;
    if (z > model.constants.taylorRadius) {
      const root = Math.sqrt(discriminant);
      const fast = half + root;
      const slow = stiffness / (mass * fast);
      const slowLeft = Math.exp(-slow * time), fastLeft = Math.exp(-fast * time);
      return (slowLeft + fastLeft) / 2 + (half * (slowLeft - fastLeft)) / (2 * root);
    }
    const envelope = Math.exp(-half * time);
    if (z < -model.constants.taylorRadius) {
      const frequency = Math.sqrt(-discriminant);
      const phase = frequency * time;
      return envelope * (Math.cos(phase) + (half * Math.sin(phase)) / frequency);
    }
    const even = 1 + (z / 2) * (1 + (z / 12) * (1 + z / 30));
    const odd = 1 + (z / 6) * (1 + (z / 20) * (1 + z / 42));
    return envelope * (even + half * time * odd);
  }

  // Log ratios to the pilots' reference configuration (posterior.forecast.covariates).
  function covariates(model, settings) {
    const of = model.reference;
    return {
      rate: Math.log(settings.learning_rate / of.learning_rate),
      group: Math.log(settings.group_size / of.group_size),
      prompts: Math.log(settings.prompts_per_step / of.prompts_per_step),
      parameters: model.logParameters + Math.log(settings.parameters / model.parameters),
      minibatches: Math.log(settings.minibatches_per_refresh),
      epochs: Math.log(settings.epochs_per_refresh),
      grown: Math.log(settings.parameters / model.parameters),
    };
  }

  // Log limit of the stiffness at an uncorrected share (dynamics.refresh_limit.stiffness_limit).
  function logLimit(model, table, share) {
    const { shares } = model.limits;
    const exact = shares.indexOf(share);
    if (exact >= 0) return table[exact];
    let above = shares.findIndex((value) => value >= share);
    above = above < 0 ? shares.length - 1 : Math.max(above, 1);
    const low = table[above - 1], high = table[above];
    if (Math.abs(high - low) > Math.log(model.constants.jump)) return Math.min(low, high);
    const part = (share - shares[above - 1]) / (shares[above] - shares[above - 1]);
    return low + (high - low) * clip(part, [0, 1]);
  }

  // Everything that a draw says of a run, before time enters.
  function runs(model, settings) {
    const c = model.columns, x = covariates(model, settings), out = [];
    const interval = settings.minibatches_per_refresh * settings.epochs_per_refresh;
    const clipped = model.base.importance_ratio ? 1 : 0;
    const momentum = model.base.momentum ?? 0;
    const age = settings.lag + (interval - 1) / 2;
    const cycles = Math.ceil(settings.lag / interval);
    const table = model.limits.table[`${interval}:${cycles}`];
    for (let i = 0; i < model.draws; i++) {
      const law = c["rate.learning_rate"][i] * x.rate + c["rate.group_size"][i] * x.group +
        c["rate.prompts_per_step"][i] * x.prompts;
      const lawStiffness = Math.exp(
        c.logStiffness[i] + c.curvature[i] * x.grown + law + c.rateNoise[i]);
      const stiffness =
        lawStiffness / (1 + (clipped * lawStiffness * (interval - 1)) / c.progressLimit[i]);
      const logLoss = c["plateau_loss.level"][i] + c["plateau_loss.learning_rate"][i] * x.rate -
        c["plateau_loss.batch"][i] * (x.group + x.prompts) +
        c["plateau_loss.refresh_interval"][i] * (x.minibatches + x.epochs) +
        c["plateau_loss.size"][i] * x.parameters;
      const loss = Math.exp(clip(logLoss - c.lossNoise[i], model.constants.logLossEnds));
      const odds = Math.exp(c.plateauNoise[i]);
      const cold = c.coldPlateau[i];
      const logHazard = c["hazard.level"][i] + c["hazard.learning_rate"][i] * x.rate -
        c["hazard.batch"][i] * (x.group + x.prompts) + c["hazard.minibatches"][i] * x.minibatches +
        c["hazard.epochs"][i] * x.epochs + c["hazard.size"][i] * x.parameters;
      const raw = Math.exp(clip(logHazard, model.constants.logHazardEnds));
      const share = c.uncorrected[i];
      const stale = share * stiffness * age;
      const bend = (1 + (stale / model.constants.staleLimit) ** 4) ** 0.25;
      out.push({
        start: c.start[i],
        plateau: ((cold * odds) / (1 - cold + cold * odds)) * Math.exp(-loss),
        stiffness,
        dispersion: c.dispersion[i],
        onset: c.onset[i],
        damping: 1 - stale / bend,
        mass: (1 + momentum) / (2 * (1 - momentum)) + (stale * age) / 2,
        hazard: raw / (1 + raw / model.constants.mostHazard),
        left: lawStiffness / Math.exp(logLimit(model, table, share)),
      });
    }
    return out;
  }

  // Train reward of every draw at one time, as a share of floor to ceiling.
  function scaledReward(model, run, polynomial, time, i) {
    const a = model.columns["rate.learning_rate"][i];
    const clock = polynomial[0] + a * (polynomial[1] + a * (polynomial[2] + a * polynomial[3]));
    let left;
    if (model.columns.isOscillator[i]) {
      const swing = (time) => oscillatorDecay(model, time, run.mass, run.damping, run.stiffness);
      left = clock > 0 ? swing(clock + 0.5) / swing(0.5) : 1;
    } else {
      left = spectrumDecay(model, clock, run.stiffness, run.damping, model.base.momentum ?? 0,
        run.dispersion, run.onset);
    }
    const level = run.plateau + (run.start - run.plateau) * left;
    const beyond = Math.log(Math.max(time / model.constants.supported, 1));
    if (!beyond || !model.constants.extrapolation) return level;
    const share = clip(level, [0, 1]);
    const gained = clip((share - run.start) / (1 - run.start), [0, 1]);
    const odds = Math.exp(model.constants.extrapolation * beyond * gained);
    return (share * odds) / (1 - share + share * odds);
  }

  function outcome(model, scaled, i) {
    const b = model.bounds;
    if (!b.isEvaluated) return b.floor + (b.ceiling - b.floor) * scaled;
    const start = model.columns.start[i], first = model.columns.evalStart[i];
    const gain = model.columns.evalGain[i];
    let level;
    if (scaled < start) level = (first * scaled) / start;
    else {
      const risen = (scaled - start) / (1 - start);
      level = first + ((1 - first) * risen * gain) / (1 - risen + risen * gain);
    }
    return b.evalFloor + (b.evalCeiling - b.evalFloor) * level;
  }

  function quantile(sorted, share) {
    const place = share * (sorted.length - 1), low = Math.floor(place);
    const high = Math.min(low + 1, sorted.length - 1);
    return sorted[low] + (sorted[high] - sorted[low]) * (place - low);
  }

  // Noise round a mean of the last tenth (forecast.predictive.final_reward), in units of the outcome.
  function noisy(model, settings, mean, i) {
    const c = model.columns, b = model.bounds, ends = model.constants.chanceEnds;
    const floor = b.isEvaluated ? b.evalFloor : b.floor;
    const range = (b.isEvaluated ? b.evalCeiling : b.ceiling) - floor;
    const expected = (mean - floor) / range;
    let variance;
    if (b.isEvaluated) variance = c.evalNoise[i] ** 2;
    else {
      const rows = Math.max(1, roundHalfEven(model.constants.finalShare * settings.planned_steps));
      const prompts = settings.prompts_per_step * rows, chance = clip(expected, ends);
      variance = chance * (1 - chance) * c.noiseScale[i] ** 2 *
        (c.within[i] / (prompts * settings.group_size) + (1 - c.within[i]) / prompts);
    }
    const spread = Math.sqrt(variance + c.misfit[i] ** 2);
    return floor + range * clip(expected + spread * c.residual[i], [0, 1]);
  }

  // Outcome with the slow residual of the run (forecast.predictive.outcome_paths).
  function wandering(model, value, i) {
    const b = model.bounds;
    const [floor, ceiling] = b.isEvaluated ? [b.evalFloor, b.evalCeiling] : [b.floor, b.ceiling];
    return clip(value + model.columns.misfit[i] * (ceiling - floor) * model.columns.residual[i], [floor, ceiling]);
  }

  function roundHalfEven(value) {
    const whole = Math.floor(value), part = value - whole;
    if (part !== 0.5) return Math.round(value);
    return whole % 2 ? whole + 1 : whole;
  }

  // Steps of the last tenth, and those behind the policies that their rows score.
  function finalSteps(model, settings) {
    const { finalShare, finalPoints } = model.constants, last = settings.planned_steps;
    const first = Math.min(Math.trunc((1 - finalShare) * last) + 1, last);
    const interval = settings.minibatches_per_refresh * settings.epochs_per_refresh;
    const steps = Array.from({ length: finalPoints }, (_, at) =>
      roundHalfEven(first + ((last - first) * at) / (finalPoints - 1)));
    return [...new Set(steps)].map((step) => model.bounds.isEvaluated ? step :
      Math.trunc(Math.max(Math.floor((step - 1) / interval) * interval - settings.lag, 0)));
  }

  function summary(values) {
    return { mean: values.reduce((a, b) => a + b, 0) / values.length, sorted: values.sort((a, b) => a - b) };
  }

  function price(model, settings) {
    const trained = settings.prompts_per_step * settings.group_size;
    const fresh = trained / settings.epochs_per_refresh;
    const cost = model.cost, steps = settings.planned_steps;
    const seconds = cost.fixed === null ? null :
      cost.fixed + cost.generated * fresh + cost.trained * trained;
    return {
      completions: (steps * trained) / settings.epochs_per_refresh,
      gpuHours: seconds === null ? null : (seconds * steps * cost.gpus) / 3600,
    };
  }

  // P(stable) as it was in truth where the model said so much (`advisor.forecast.survival`).
  function recalibrated(model, said, settings) {
    if (model.line === null) return said;
    const [intercept, slope, updateNorm, onlyLowers] = model.line, most = model.constants.logits;
    const odds = clip(Math.log(said) - Math.log1p(-said), [-most, most]);
    const norm = Math.log(settings.learning_rate) + 0.5 * Math.log(settings.parameters);
    const found = 1 / (1 + Math.exp(-intercept - updateNorm * norm - slope * odds));
    return onlyLowers ? Math.min(found, said) : found;
  }

  // One configuration; with `times` also the curve's mean and band at those steps.
  function evaluate(model, asked, times = []) {
    const settings = { prompts_per_step: model.base.prompts_per_step, ...asked };
    const steps = settings.planned_steps;
    const base = { ...model.base, planned_steps: steps };
    const rates = factors(base, steps);
    const final = finalSteps(model, settings);
    const stepsAsked = [...new Set([...times, ...final, steps])];
    const polynomials = clockPolynomials(model, rates, stepsAsked);
    const last = polynomials[stepsAsked.indexOf(steps)];
    const all = runs(model, settings);
    const exposure = rates.reduce((total, rate) => total + rate * rate, 0);
    const b = model.reference;
    const heat = (settings.learning_rate / (settings.prompts_per_step * settings.group_size)) /
      (b.learning_rate / (b.prompts_per_step * b.group_size));
    const rewards = [], ends = [];
    let joint = 0, refresh = 0, tolerance = 0, calm = 0;
    all.forEach((run, i) => {
      const scaled = scaledReward(model, run, last, steps, i);
      rewards.push(outcome(model, scaled, i));
      const tenth = final.map((time) =>
        outcome(model, scaledReward(model, run, polynomials[stepsAsked.indexOf(time)], time, i), i));
      ends.push(noisy(model, settings, tenth.reduce((a, b) => a + b, 0) / tenth.length, i));
      const contracts = run.left * model.columns.stiffnessRatio[i] < 1 ? 1 : 0;
      const survives = Math.exp(-run.hazard * exposure);
      const inflation = run.left < 1 ? 1 / (1 - run.left) : Infinity;
      const wander = model.columns.misfit[i] * Math.sqrt(heat * inflation);
      const small = model.constants.spreads * wander < model.constants.fall * scaled ? 1 : 0;
      const all3 = contracts * survives * small;
      joint += all3;
      refresh += contracts; tolerance += survives; calm += small;
    });
    const n = model.draws, mean = joint / n;
    const tail = (1 - model.constants.interval) / 2;
    const end = summary(rewards), lasts = summary(ends);
    const stable = recalibrated(model, mean, settings);
    const curve = times.map((time) => {
      const polynomial = polynomials[stepsAsked.indexOf(time)];
      const curve = all.map((run, i) => outcome(model, scaledReward(model, run, polynomial, time, i), i));
      const found = summary(curve.map((value, i) => wandering(model, value, i)));
      const mean = curve.reduce((a, b) => a + b, 0) / curve.length;
      return { step: time, mean, low: quantile(found.sorted, tail), high: quantile(found.sorted, 1 - tail) };
    });
    return {
      reward: end.mean,
      rewardLow: quantile(lasts.sorted, tail),
      rewardHigh: quantile(lasts.sorted, 1 - tail),
      stable,
      least: Math.min(mean, stable),
      refresh: refresh / n,
      tolerance: tolerance / n,
      fluctuation: calm / n,
      supported: steps <= model.constants.supported,
      ...price(model, settings),
      curve,
    };
  }

  return { load, evaluate };
})();

if (typeof module !== "undefined") module.exports = Forecast;
