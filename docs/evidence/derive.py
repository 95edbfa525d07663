"""Every number of the evidence pages, derived from the committed results of the case studies.

    python docs/evidence/derive.py            # which numbers in the pages are wrong
    python docs/evidence/derive.py --write    # put the right ones in

A page writes a number and, behind it, the name that it has here, ``0.156<!--forecast.all.mae-->``.
The README's numbers are written and checked in the same way.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "case_studies"

MARKED = re.compile(r"(?P<shown>[^\s|*(\[{]+)<!--(?P<name>[\w. -]+)-->")
"""A number as shown, and the name of what it has to be."""

Named = dict[str, str]


def pages(root: Path = ROOT) -> list[Path]:
    """Files whose numbers are checked."""
    return [root / "README.md", *sorted((root / "docs" / "evidence").glob("*.md"))]


def numbers(studies: Path = STUDIES) -> Named:
    """Numbers by name, as they are shown.

    Parameters
    ----------
    studies : Path
        Folder of the case studies.
    """
    out: Named = {}
    for part in (
        language_model,
        real_runs,
        public_logs,
        tiny_forecasts,
        advice,
        economics,
        new_worlds,
        stability,
        failures,
        theory,
        sampler,
    ):
        found = part(studies)
        twice = out.keys() & found.keys()
        if twice:
            raise ValueError(f"two numbers have one name: {sorted(twice)}")
        out |= found
    return out


def wrong(text: str, right: Named) -> list[str]:
    """What is wrong with the marked numbers of a text."""
    found = []
    for marked in MARKED.finditer(text):
        name, shown = marked["name"], marked["shown"]
        if name not in right:
            found.append(f"{name} is not derived in docs/evidence/derive.py")
        elif shown != right[name]:
            found.append(f"{name} is {right[name]}, not {shown}")
    return found


def corrected(text: str, right: Named) -> str:
    """Text with every marked number as it has to be."""
    return MARKED.sub(
        lambda marked: f"{right.get(marked['name'], marked['shown'])}<!--{marked['name']}-->", text
    )


def public_logs(studies: Path) -> Named:
    """Public runs of language models: forecasts, collapse foretold, the sweep of schedules."""
    result = _read(studies / "public_logs/public_logs.json")
    out: Named = {"public.runs": str(result["asked"]["runs"])}
    repositories = {"all": "all", "Sunshine535": "altered", "unslothai": "unsloth"}
    repositories["ShibukiZero"] = "cs336"
    for repository, short in repositories.items():
        scores = result["forecasts"][repository]
        out[f"forecast.{short}.runs"] = str(scores["runs"])
        for method in ("advisor", "last value", "exponential", "ensemble"):
            name = f"forecast.{short}.{method.replace(' ', '_')}"
            out[f"{name}.mae"] = _three(scores[method]["mae"])
            out[f"{name}.crps"] = _three(scores[method]["crps"])
            out[f"{name}.holds"] = _percent(scores[method]["80 % holds"])
    shares = _read(studies / "backtest/real_logs.json")["by_share"]
    for share, percent in (("0.1", "10"), ("0.25", "25"), ("0.5", "50")):
        out[f"forecast.seen{percent}.runs"] = str(shares[share]["advisor"]["runs"])
        for method in ("advisor", "last value", "ensemble"):
            name = f"forecast.seen{percent}.{method.replace(' ', '_')}"
            out[f"{name}.mae"] = _three(shares[share][method]["mae"])
            out[f"{name}.holds"] = _percent(shares[share][method]["coverage"]["0.8"])
    fits = result["closed_form"]
    out["fits.runs"] = str(fits["all"]["runs"])
    out["fits.r2_rows"] = _two(fits["all"]["r2_rows"])
    out["fits.error"] = _two(fits["all"]["forecast_error"])
    out["fits.last_value"] = _two(fits["all"]["last_value_error"])
    out["fits.rank_correlation"] = _two(fits["rank_correlation_of_r2_and_error"])
    out |= _collapse_foretold(result)
    out |= _sweep(result["off_policy"]["said"])
    return out


def language_model(studies: Path) -> Named:
    """Runs of a language model trained as advised, and what the shipped presets said of others."""
    loop, said = (_read(studies / "language_model" / name) for name in ("loop.json", "said.json"))
    summary = loop["summary"]
    names = {
        "advisor": "advisor",
        "best pilot": "best_pilot",
        "best constant of the other tasks": "constant",
        "TRL's default": "trl",
        "verl's example": "verl",
        "Optuna's TPE": "tpe",
        "successive halving": "halving",
    }
    out = {"lm.tasks": str(len(loop["tasks"])), "lm.said.runs": str(said["runs"])}
    for method, short in names.items():
        if method in summary:
            for word in ("runs", "died"):
                out[f"lm.{short}.{word}"] = str(summary[method][word])
            out[f"lm.{short}.regret"] = _three(summary[method]["regret"])
    out["lm.stable.least"] = _two(min(task["said"]["p_stable"] for task in loop["tasks"]))
    out["lm.inside"], out["lm.inside.of"] = map(str, summary["interval_80_holds"])
    for method, scores in said["piloted"].items():
        short = method.replace(" ", "_")
        out[f"lm.piloted.{short}.mae"] = _three(scores["mae"])
        out[f"lm.piloted.{short}.bias"] = _three(scores["bias"])
        out[f"lm.piloted.{short}.holds"] = _percent(scores["coverage"]["0.8"])
    for part in ("0-3", "3-6", "6-12", "12-100"):
        if part in said:
            for word in ("mae", "bias", "crps"):
                out[f"lm.{part}.{word}"] = _three(said[part][word])
            out[f"lm.{part}.holds"] = _percent(said[part]["coverage"]["0.8"])
    return out


def real_runs(studies: Path) -> Named:
    """Every public run with 40 rewards, cut or beside whole siblings, and what others say of it."""
    result = _read(studies / "real_runs/real_runs.json")
    out: Named = {"real.runs": str(result["runs"])}
    out["real.repositories"] = str(result["repositories"])
    methods = {
        "advisor": "advisor",
        "last third": "third",
        "last value": "last",
        "exponential": "exponential",
        "ensemble of curves": "ensemble",
        "local level": "level",
        "ridge": "ridge",
        "boosted trees": "trees",
        "siblings' gain": "gain",
    }
    for scene, short in (("all_cut", "cut"), ("siblings_whole", "whole")):
        for share, found in result[scene].items():
            at = f"real.{short}.{round(100 * float(share))}"
            out[f"{at}.runs"] = str(found["methods"]["advisor"]["n"])
            out[f"{at}.unanswered"] = str(found["unanswered"])
            out[f"{at}.curved"] = str(found["with_pooled_curve"])
            for name, word in methods.items():
                if name in found["methods"]:
                    scores = found["methods"][name]
                    out[f"{at}.{word}.mae"] = _three(scores["mae"])
                    out[f"{at}.{word}.crps"] = _three(scores["crps"])
                    out[f"{at}.{word}.over"] = _three(scores["mae_over_repositories"])
                    out[f"{at}.{word}.holds"] = _percent(scores["coverage"]["0.8"])
            for score in ("mae", "crps"):
                best = found["against_best"][score]
                out[f"{at}.{score}.best"] = best["best"]
                out[f"{at}.{score}.ratio"] = _two(best["ratio"])
                low, high = best["interval_0.8"]
                out[f"{at}.{score}.low"], out[f"{at}.{score}.high"] = _two(low), _two(high)
            worst = found["against_best"]["worst_repository"]
            if worst is not None:
                out[f"{at}.worst.name"], out[f"{at}.worst.ratio"] = worst[0], _two(worst[1])
    return out | _real_stable(_read(studies / "real_runs/real_stable.json")) | _real_sweeps(studies)


def _real_stable(result: dict[str, Any]) -> Named:
    """P(stable) of public runs of which a part is seen."""
    out = {f"real.stable.{name}": str(result[name]) for name in ("runs", "died", "repositories")}
    names = {
        "advisor": "model",
        "recalibrated": "line",
        "logistic": "logistic",
        "base rate": "base",
    }
    for method, short in names.items():
        scores = result["scores"][method]
        out[f"real.stable.{short}.brier"] = _three(scores["brier"])
        out[f"real.stable.{short}.log"] = _three(scores["log_score"])
        low, high = scores["brier_less_base_rate_95"]
        out[f"real.stable.{short}.low"], out[f"real.stable.{short}.high"] = (
            _three(low),
            _three(high),
        )
    sure = result["classes"]["advisor"][0]
    out["real.stable.sure.runs"] = str(sure["runs"])
    out["real.stable.sure.died"] = str(round(sure["runs"] * sure["died"]))
    return out


def _real_sweeps(studies: Path) -> Named:
    """Settings named by quarter-long pilots of public sweeps."""
    out: Named = {}
    for name, found in _read(studies / "real_runs/sweeps.json").items():
        short = "interval" if name.endswith("every 1 refreshes") else "rate"
        out[f"real.sweep.{short}.runs"] = str(found["runs"])
        for method, word in (
            ("advisor", "advisor"),
            ("best pilot", "pilot"),
            ("any setting", "any"),
        ):
            out[f"real.sweep.{short}.{word}.regret"] = _three(found[method]["regret"])
            out[f"real.sweep.{short}.{word}.died"] = _percent(found[method]["died"])
    return out


def _collapse_foretold(result: dict[str, Any]) -> Named:
    """Collapse of a repository's runs, told by their settings and by the other repositories."""
    asked, said = result["asked"], result["instability"]
    out = {"foretold.runs": str(asked["askable"]), "foretold.collapsed": str(asked["collapsed"])}
    out["foretold.collapsed_asked"] = str(asked["collapsed_askable"])
    names = {"hazard law": "law", "logistic": "logistic", "base rate of the others": "base"}
    for method, short in names.items():
        scores = said["scores"][method]
        out[f"foretold.{short}.brier"] = _three(scores["brier"][0])
        out[f"foretold.{short}.auc"] = _two(scores["auc"][0])
        _, low, high = scores["brier_less_base_rate"]
        out[f"foretold.{short}.less_low"] = _three(low)
        out[f"foretold.{short}.less_high"] = _three(high)
    lowest = said["reliability"]["hazard law"][0]
    out["foretold.lowest.runs"] = str(lowest["runs"])
    out["foretold.lowest.said"] = _three(lowest["said"])
    out["foretold.lowest.happened"] = _three(lowest["happened"])
    return out


def _sweep(said: dict[str, Any]) -> Named:
    """Public sweep of refresh schedules: what was said of the two that collapsed."""
    cases = {
        "first quarter of every run": "quarter",
        "runs that lived, whole": "lived",
        "all but 1 x 16, whole": "but16",
        "all but 1 x 8, whole": "but8",
        "every run, whole": "all",
    }
    out: Named = {}
    for case, short in cases.items():
        answer = said[case]["as the preset is"]
        below, collapsed = answer["collapsed_below_half"]
        out[f"sweep.{short}.below"] = str(below)
        out[f"sweep.{short}.collapsed"] = str(collapsed)
        out[f"sweep.{short}.auc"] = _two(answer["auc"])
    return out


def tiny_forecasts(studies: Path) -> Named:
    """Forecasts of finished tiny-transformer runs, and of the runs trained through TRL."""
    result = _read(studies / "backtest/tiny_grpo.json")
    out: Named = {"tiny.runs": str(result["methods"]["advisor"]["runs"])}
    for share, percent in (("0.1", "10"), ("0.25", "25"), ("0.5", "50")):
        for method in ("advisor", "exponential", "ensemble"):
            scores = result["by_share"][share][method]
            out[f"tiny.seen{percent}.{method}.mae"] = _three(scores["mae"])
            out[f"tiny.seen{percent}.{method}.holds"] = _percent(scores["coverage"]["0.8"])
    unseen = _read(studies / "backtest/tiny_grpo.full_finetuning.json")["methods"]["advisor"]
    out["tiny.other_preset.mae"] = _three(unseen["mae"])
    out["tiny.other_preset.holds"] = _percent(unseen["coverage"]["0.8"])
    transfer = _read(studies / "backtest/transfer.json")["by_pilots"]
    for number in ("0", "2"):
        for method, short in (("advisor", "advisor"), ("nearest, exponential", "nearest")):
            scores = transfer[number][method]
            out[f"unbegun.{number}.{short}.mae"] = _three(scores["mae"])
            out[f"unbegun.{number}.{short}.holds"] = _percent(scores["coverage"]["0.8"])
    trl = _read(studies / "trl_end_to_end/trl.json")
    forecast = trl["advised"]["reward"]
    out["trl.mean"], out["trl.lower"] = _two(forecast["mean"]), _two(forecast["lower"])
    out["trl.upper"] = _two(forecast["upper"])
    inside, runs = trl["came"]["inside_80"]
    out["trl.inside"], out["trl.runs"] = str(inside), str(runs)
    out["trl.lowest"] = _two(min(trl["came"]["finals"]))
    out["trl.highest"] = _two(max(trl["came"]["finals"]))
    pilot = trl["best_pilot"]["finals"]
    out["trl.pilot_mean"] = _two(sum(pilot) / len(pilot))
    return out


def advice(studies: Path) -> Named:
    """What came of advice: replayed on tables, trained, and for larger models."""
    out: Named = {}
    replay = _read(studies / "replay/replay.json")
    own = _read(studies / "replay/replay_own_tables.json")
    methods = {
        "advisor": "advisor",
        "best pilot": "best_pilot",
        "Optuna TPE": "tpe",
        "successive halving": "halving",
        "best constant of the other tables": "constant",
        "recipe: TRL": "trl",
        "advisor, no pilots": "no_pilots",
    }
    for scenario in ("any", "low_lr", "sample_budget"):
        pooled = replay["scenarios"][scenario]["pooled"]
        for method, short in methods.items():
            if method in pooled:
                out[f"replay.{scenario}.{short}"] = _three(pooled[method]["regret_mean"])
    with gzip.open(studies / "replay/predictions.jsonl.gz", "rt", encoding="utf-8") as lines:
        given = [(row["table"], row["named"]["advisor"]) for row in map(json.loads, lines)]
    out["replay.pieces"], out["replay.distinct"] = str(len(given)), str(len(set(given)))
    scored = [
        table["advisor"]["collapses"]
        for file in (replay, own)
        for scenario in file["scenarios"].values()
        for table in scenario["tables"].values()
    ]
    out["replay.collapses"] = str(sum(scored))
    for method, short in (("advisor", "advisor"), ("best extrapolated pilot", "extrapolated")):
        late = own["scenarios"]["any"]["tables"]["late_collapse sort s"][method]
        out[f"replay.late.{short}.collapses"] = str(late["collapses"])
        out[f"replay.late.{short}.n"] = str(late["n"])
    out |= _closed_loop(studies)
    out |= _size_transfer(studies)
    return out


def _closed_loop(studies: Path) -> Named:
    """Full runs that were really trained as advised."""
    found = _read(studies / "closed_loop/closed_loop.json")
    summary, loops = found["summary"], found["loops"]
    names = {
        "advisor, small pilots": "advisor",
        "advisor, pilots of the same size": "same_size",
        "Optuna TPE": "tpe",
        "Optuna GP": "gp",
        "best small pilot": "best_pilot",
        "successive halving": "halving",
        "TRL defaults": "trl",
    }
    out: Named = {}
    for method, short in names.items():
        scores = summary[method]
        out[f"loop.{short}.mean"] = _three(scores["regret_mean"])
        out[f"loop.{short}.worst"] = _three(scores["regret_worst"])
        out[f"loop.{short}.n"] = str(scores["n"])
        out[f"loop.{short}.collapses"] = str(scores["collapses"])
    for short in ("advisor", "same_size"):
        method = next(name for name, value in names.items() if value == short)
        inside, runs = summary[method]["inside_80"]
        out[f"loop.{short}.inside"], out[f"loop.{short}.runs"] = str(inside), str(runs)
        named = {
            (loop["task"], tuple(row["place"]))
            for loop in loops
            for row in loop["rows"]
            if row["method"] == method and row["place"] is not None
        }
        out[f"loop.{short}.places"] = str(len(named))
        out[f"loop.{short}.worlds"] = str(len({task for task, _ in named}))
    return out


def _size_transfer(studies: Path) -> Named:
    """Advice for models larger than any that was piloted."""
    out: Named = {}
    for short, file in (("size", "size_transfer.json"), ("held", "held_out.json")):
        found = _read(studies / "size_transfer" / file)
        rows, behind = found["by_pilots_and_target"], found["counted"]
        out[f"{short}.runs"], out[f"{short}.worlds"] = str(behind["runs"]), str(behind["worlds"])
        out[f"{short}.failed_runs"] = str(behind["failed_runs"])
        out[f"{short}.warned_chance"] = _two(behind["chance_of_warned"])
        out[f"{short}.refute"] = str(behind["collapses_that_refute"])
        for row in rows:
            name = f"{short}.{row['pilots'].replace('+', '_')}.{row['target']}"
            out[f"{name}.regret"] = _three(row["regret_mean"])
            out[f"{name}.pilot"] = _three(row["regret_of_best_pilot"])
            out[f"{name}.failed"], out[f"{name}.n"] = str(row["failed"]), str(row["n"])
            out[f"{name}.collapsed"], out[f"{name}.inside"] = (
                str(row["collapsed"]),
                str(row["inside_80"]),
            )
            out[f"{name}.said"] = _two(row["p_stable"])
        total = {key: sum(row[key] for row in rows) for key in ("n", "failed", "inside_80")}
        out[f"{short}.n"], out[f"{short}.failed"] = str(total["n"]), str(total["failed"])
        out[f"{short}.inside"] = str(total["inside_80"])
        out[f"{short}.collapsed"] = str(sum(row["collapsed"] for row in rows))
        mean = sum(row["regret_mean"] * row["n"] for row in rows) / total["n"]
        out[f"{short}.regret"] = _three(mean)
    return out


def economics(studies: Path) -> Named:
    """Regret of pilots and full run out of one purse, and what became of advised runs."""
    found = _read(studies / "economics/economics.json")
    searches = _read(studies / "economics/searches.json")["methods"]
    stable = _read(studies / "economics/stable.json")
    sure, worlds = stable["advised"]["0.95"], stable["worlds"]
    said = worlds["methods"]
    line = said["line of the others"]
    out: Named = {
        "econ.worlds": str(found["worlds"]),
        "econ.constant": _three(
            found["methods"]["best constant of other worlds, 0 pilots"]["regret_mean"]
        ),
        "econ.plan": _three(found["methods"]["advisor, its own plan"]["regret_mean"]),
        "econ.sure.runs": str(sure["runs"]),
        "econ.sure.died": str(sure["died"]),
        "econ.sure.at_least": _percent(sure["at_least"]),
        "econ.stable.runs": f"{worlds['runs']:,}",
        "econ.stable.worlds": str(worlds["worlds"]),
        "econ.stable.model": _three(said["model"]["brier"]),
        "econ.stable.line": _three(line["brier"]),
        "econ.stable.slope": _two(line["slope"]),
        "econ.stable.intercept": _two(line["intercept"]),
        "econ.stable.base": _three(said["base rate of the others"]["brier"]),
    }
    methods = {
        "advisor": "advisor",
        "ladder": "best of the ladder",
        "tpe": "Optuna TPE",
        "halving": "successive halving",
        "random": "best of random pilots",
    }
    for short, name in methods.items():
        for count in (3, 5, 8):
            own = (found["methods"] | searches)[f"{name}, {count} pilots"]
            out[f"econ.{short}.{count}"] = _three(own["regret_mean"])
    return out


def new_worlds(studies: Path) -> Named:
    """Regret of advice replayed on worlds of other tasks."""
    found = _read(studies / "replay/replay_plain_worlds.json")
    searches = _read(studies / "replay/searches_plain.json")["pooled"]
    methods = {
        "advisor": "advisor",
        "blind": "advisor, no pilots",
        "constant": "best constant of the other tables",
        "tpe": "Optuna TPE",
        "halving": "successive halving",
    }
    out: Named = {"plain.worlds": str(len(found["scenarios"]["any"]["tables"]))}
    for short, name in methods.items():
        out[f"plain.{short}"] = _three((found["pooled"] | searches)[name]["regret_mean"])
    out["plain.collapses"] = str(found["pooled"]["advisor"]["collapses"])
    out["plain.n"] = str(found["pooled"]["advisor"]["n"])
    return out


def stability(studies: Path) -> Named:
    """Whether P(stable) means what it says, on replayed tables."""
    result = _read(studies / "replay/calibration.json")
    out: Named = {
        "p_stable.brier": _three(result["brier"]),
        "p_stable.base": _three(result["brier_of_base_rate"]),
        "p_stable.forecasts": f"{result['forecasts']:,}",
        "p_stable.advised": str(result["advised_at_95"]),
        "p_stable.advised_lived": _percent(result["advised_at_95_lived"]),
        "p_stable.advised_runs": str(result["advised_at_95_runs"]),
        "p_stable.advised_tables": str(result["advised_at_95_tables"]),
        "p_stable.advised_may_die": _percent(result["advised_at_95_may_die"]),
    }
    for number, row in enumerate(result["classes"]):
        out[f"p_stable.{number}.said"] = _two(row["said"])
        out[f"p_stable.{number}.lived"] = _two(row["lived"])
        out[f"p_stable.{number}.n"] = f"{row['n']:,}"
        out[f"p_stable.{number}.runs"] = str(row["runs"])
    older = _read(studies / "economics/stable.json")["older tables"]
    shipped = ROOT / "priors/small_models.toml"
    line = tomllib.loads(shipped.read_text(encoding="utf-8"))["stability_line"]
    for name in ("intercept", "slope", "update_norm", "spread"):
        out[f"p_stable.line.{name}"] = _two(line[name])
    out["p_stable.line.tables"] = str(line["groups"])
    out["p_stable.line.runs"] = f"{line['runs']:,}"
    out["p_stable.line.older"] = str(older["worlds"])
    out["p_stable.line.brier"] = _three(older["methods"]["line of the others"]["brier"])
    late = [pair for name, pair in older["brier_by_world"].items() if name.startswith("late")]
    for place, key in enumerate(("brier", "brier_recalibrated")):
        out[f"p_stable.late.{key}"] = _two(sum(pair[place] for pair in late) / len(late))
    return out


def failures(studies: Path) -> Named:
    """Verdicts on finished runs, and alarms on runs that go on."""
    found = _read(studies / "public_logs/public_logs.json")["diagnoses"]
    out: Named = {}
    names = {
        "collapses_found": "collapses",
        "onset_within_10": "onset",
        "healthy_failed": "healthy",
        "left_out_collapses_found": "left_out",
        "left_out_false": "left_out_false",
    }
    for key, short in names.items():
        out[f"diagnose.{short}"], out[f"diagnose.{short}.of"] = map(str, found[key])
    simulated = _read(studies / "diagnose/diagnose.json")["simulated"]
    for mode in ("reward_hacking", "advantage_degeneracy", "policy_concentration"):
        out[f"simulated.{mode}"] = str(simulated["flagged"][mode][mode])
    for mode in ("dynamical_instability", "truncation", "collapse"):
        out[f"simulated.{mode}"] = str(simulated["flagged"][mode][mode])
    out["simulated.healthy"] = str(max(simulated["flagged"]["healthy"].values()))
    scenarios = {
        "an action scores 1 and is wrong": "hacking",
        "hopeless prompts, groups of 4": "degeneracy",
        "no penalty, small steps on larger batches": "slow_concentration",
        "no penalty, large steps on small batches": "fast_concentration",
        "rate up to 3 times the limit, held for 16 steps": "instability",
    }
    provoked = {
        row["scenario"]: row for row in _read(studies / "softmax_bandit/bandit.json")["failures"]
    }
    for scenario, short in scenarios.items():
        row = provoked[scenario]
        out[f"provoked.{short}.happened"] = str(row["happened"])
        out[f"provoked.{short}.own"] = str(row["top"].get(row["cause_of"], 0))
    watch = _read(studies / "watch/watch.json")["table"]
    cases = {
        "rate x 10": "logged10",
        "rate x 10, rate not logged": "hidden10",
        "stale, K = 16, uncorrected": "stale",
    }
    for case, short in cases.items():
        row = watch[case]
        out[f"watch.{short}.alarms"], out[f"watch.{short}.runs"] = (
            str(row["alarms"]),
            str(row["runs"]),
        )
        out[f"watch.{short}.steps"] = f"{row['median steps']:g}"
    for case, short in (("healthy", "healthy"), ("healthy at 1e-3", "hot")):
        out[f"watch.{short}.looks"] = f"{watch[case]['healthy steps']:,}"
        out[f"watch.{short}.false"] = str(watch[case]["false alarms"])
        out[f"watch.{short}.holds"] = _percent(watch[case]["80 % interval covers the end"])
    return out


def theory(studies: Path) -> Named:
    """The theory's predictions in a bandit and in a network."""
    bandit = _read(studies / "softmax_bandit/bandit.json")
    ratios = [row["measured"] / row["map"] for row in bandit["refresh"]]
    paper = [row["measured"] / row["paper"] for row in bandit["refresh"]]
    out: Named = {
        "bandit.cases": str(len(ratios)),
        "bandit.off": f"{100 * max(abs(ratio - 1) for ratio in ratios):.1f}",
        "bandit.paper_low": _two(min(paper)),
        "bandit.paper_high": _two(max(paper)),
    }
    invariant = bandit["group_size_exponents"]
    for key, short in (("sgd, leave_one_out", "sgd"), ("adamw, leave_one_out", "adamw")):
        out[f"bandit.{short}.speed"] = _two(invariant[key]["speed"])
        out[f"bandit.{short}.spread"] = _three(invariant[key]["reward_spread"])
    out["bandit.normalised.spread"] = _three(invariant["sgd, group"]["reward_spread"])
    for setup in _read(studies / "refresh_threshold/refresh_threshold.json")["setups"]:
        name = f"threshold.{setup['name'].replace(', ', '_')}"
        said = setup["without_ratio"]["p_diverges"]
        below = [part for part in said["bins"] if part["to"] <= 0.5]
        above = [part for part in said["bins"] if part["from"] >= 0.5]
        for side, parts in (("below", below), ("above", above)):
            out[f"{name}.{side}.lost"] = str(sum(part["lost"] for part in parts))
            out[f"{name}.{side}.runs"] = str(sum(part["runs"] for part in parts))
        out[f"{name}.brier"] = _three(said["brier"])
        out[f"{name}.share"] = _three(said["brier_of_the_share"])
        out[f"{name}.with_ratio"] = _three(setup["with_ratio"]["brier"])
        out[f"{name}.with_ratio_share"] = _three(setup["with_ratio"]["brier_of_the_share"])
    return out


def sampler(studies: Path) -> Named:
    """Whether the sampler does what the model says, and how fast."""
    out: Named = {}
    for family, row in _read(studies / "calibration/ranks.json").items():
        out[f"ranks.{family}.simulations"] = str(row["simulations"])
        out[f"ranks.{family}.outside"] = str(row["outside_band_of_all"])
        out[f"ranks.{family}.tested"] = str(row["quantities_tested"])
        out[f"ranks.{family}.unconverged"] = str(row["not_converged"])
    for world, row in _read(studies / "calibration/misspecified.json").items():
        name = f"worlds.{world.replace(' ', '_')}"
        out[f"{name}.n"] = str(row["fitted"])
        out[f"{name}.holds"] = _percent(row["holds_80"][0])
        out[f"{name}.error"] = _two(row["true_less_said"][0])
        out[f"{name}.said"], out[f"{name}.lived"] = (
            _two(row["lives_said"][0]),
            _two(row["lives_true"][0]),
        )
        out[f"{name}.hot_said"], out[f"{name}.hot_lived"] = (
            _two(row["hot_said"][0]),
            _two(row["hot_true"][0]),
        )
        out[f"{name}.named"] = str(row["curve_does_not_fit"])
        out[f"{name}.diagnosed"] = str(row["diagnosed"])
    cohorts = _read(studies / "convergence/convergence.json")["cohorts"]
    fits = [fit for fits in cohorts.values() for fit in fits]
    out["fits.converged"] = str(sum(fit["converged"] for fit in fits))
    out["fits.number"], out["fits.cohorts"] = str(len(fits)), str(len(cohorts))
    refused = _read(studies / "backtest/real_logs.json")["failed"]
    out["fits.real_unconverged"] = str(len(refused))
    speed = _read(studies / "speed/speed.json")
    out["speed.first"] = f"{speed['processes']['first_s']:.1f}"
    out["speed.later"] = f"{speed['processes']['later_s']:.1f}"
    out["speed.refit"] = f"{speed['refits']['median_s']:.1f}"
    bandits = _read(studies / "calibration/bandits.json")["methods"]
    for method in ("advisor", "exponential"):
        out[f"bandits.{method}.mae"] = _three(bandits[method]["mae"])
        out[f"bandits.{method}.holds"] = _percent(bandits[method]["coverage"]["0.8"])
    return out


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _two(value: float) -> str:
    return f"{value:.2f}"


def _three(value: float) -> str:
    return f"{value:.3f}"


def _percent(share: float) -> str:
    """Share in percent, without the sign."""
    return f"{100 * share:.0f}"


def main(arguments: Iterable[str]) -> int:
    """Check the pages, or write the right numbers into them."""
    right, found = numbers(), 0
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if "--write" in arguments:
            path.write_text(corrected(text, right), encoding="utf-8")
            text = path.read_text(encoding="utf-8")
        for message in wrong(text, right):
            print(f"{path.relative_to(ROOT)}: {message}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
