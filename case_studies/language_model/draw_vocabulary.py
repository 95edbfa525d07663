"""Which tokens of a model are kept: what the tasks use, and what the untrained model would say.

    python case_studies/language_model/draw_vocabulary.py gemma [--least 0.998]

Tokens of all prompts and answers are kept, and of the likely continuations on 250 training prompts
as many as hold the given probability. What is removed is measured on 500 held-out prompts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from later_tasks import EVERY_TASK  # noqa: E402
from model_folder import whole  # noqa: E402
from model_weights import MODELS  # noqa: E402
from vocabulary import KEPT, with_parts  # noqa: E402

CHOSEN_ON, MEASURED_ON = 250, 500
"""Prompts of the training set, and others, spread evenly over the tasks."""
BATCH = 32


def continued(model: Any, tokenizer: Any, held_out: bool, chat: bool) -> tuple[Any, dict[str, Any]]:
    """Mean probability of each token over the positions of sampled answers; rewards by task."""
    import torch

    torch.manual_seed(int(held_out))
    total = torch.zeros(model.config.vocab_size, dtype=torch.float64)
    positions, rewards = 0.0, {}
    of_task = -(-(MEASURED_ON if held_out else CHOSEN_ON) // len(EVERY_TASK))
    for task in EVERY_TASK.values():
        scores = []
        rows = task.prompts(of_task, held_out=held_out, chat=chat)
        for batch in _in(rows):
            given = tokenizer([one["prompt"] for one in batch], return_tensors="pt", padding=True)
            ids, mask, cache = given["input_ids"], given["attention_mask"], None
            going, said = torch.ones(len(batch), dtype=torch.bool), []
            for _ in range(task.longest):
                places = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
                with torch.no_grad():
                    read = model.model(
                        ids, attention_mask=mask, position_ids=places, past_key_values=cache
                    )
                    logits = model.lm_head(read.last_hidden_state[:, -1])
                shares = torch.softmax(logits.float(), -1)
                total += shares[going].sum(0)
                positions += float(going.sum())
                token, cache = torch.multinomial(shares, 1), read.past_key_values
                said.append(token)
                going = going & (token[:, 0] != tokenizer.eos_token_id)
                ids, mask = token, torch.cat([mask, torch.ones_like(token)], 1)
            for one, answer in zip(batch, torch.cat(said, 1).tolist(), strict=True):
                end = tokenizer.eos_token_id
                text = tokenizer.decode(answer[: answer.index(end)] if end in answer else answer)
                scores.append(task.reward(text, one["question"], one["answer"]))
        rewards[task.name] = round(sum(scores) / len(scores), 3)
        print(task.name, rewards[task.name], repr(text), flush=True)
    return total / positions, rewards


def _in(rows: Sequence[dict[str, str]]) -> list[Sequence[dict[str, str]]]:
    return [rows[first : first + BATCH] for first in range(0, len(rows), BATCH)]


def used(tokenizer: Any, chat: bool) -> set[int]:
    """Tokens of every prompt and every answer, alone and after its prompt."""
    found = set(tokenizer.all_special_ids)
    for task in EVERY_TASK.values():
        for held_out in (False, True):
            for one in task.prompts(2048, held_out=held_out, chat=chat):
                for text in (one["prompt"], one["answer"], f"{one['prompt']} {one['answer']}\n"):
                    found |= set(tokenizer(text)["input_ids"])
    return found


def main() -> None:
    """Draw, measure, keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--least", type=float, default=0.998, help="probability that is kept")
    given = parser.parse_args()
    import torch

    own = MODELS[given.model]
    model, tokenizer = whole(own)
    tokenizer.padding_side = "left"
    model = model.to(torch.bfloat16).eval()
    description = json.loads(tokenizer.backend_tokenizer.to_str())
    alphabet = {
        token
        for text, token in description["model"]["vocab"].items()
        if (len(text) == 1 and text.isprintable() and ord(text) < 324) or text[:3] == "<0x"
    }
    shares, _ = continued(model, tokenizer, False, own.chat)
    order = shares.argsort(descending=True)
    likely = order[: int((shares[order].cumsum(0) < given.least).sum()) + 1].tolist()
    tokens = with_parts(description, used(tokenizer, own.chat) | set(likely) | alphabet)
    print(len(likely), "likely,", len(tokens), "kept")
    KEPT.mkdir(exist_ok=True)
    (KEPT / f"{own.key}.json").write_text(json.dumps({"tokens": tokens}), encoding="utf-8")
    others, rewards = continued(model, tokenizer, True, own.chat)
    document = {
        "model": own.name,
        "sha256": own.sha256,
        "removed_probability": float(f"{1 - float(others[tokens].sum()):.3g}"),
        "prompts": MEASURED_ON,
        "untrained_reward": rewards,
        "tokens": tokens,
    }
    (KEPT / f"{own.key}.json").write_text(json.dumps(document) + "\n", encoding="utf-8")
    print({name: value for name, value in document.items() if name != "tokens"})


if __name__ == "__main__":
    main()
