"""Text generation with a cache that grows: the words are onnxruntime's, and those without one."""

import jax
import numpy as np
import onnx
import onnxruntime
import pytest
from models.build import SMALL, build

import migraphx

pytestmark = pytest.mark.slow

STEPS, PROMPT = 32, 5
SIZES = SMALL["gpt_cached"]
LAYERS, HEADS, DEPTH = SIZES["layers"], SIZES["heads"], SIZES["width"] // SIZES["heads"]
PARTS = [f"{k}.{part}" for k in range(LAYERS) for part in ("key", "value")]
DYN = migraphx.shape.dynamic_dimension
DIMS = {
    "batch": DYN(1, 4),
    "sequence": DYN(1, 64),
    "past": DYN(0, 63),
    "past + sequence": DYN("past + sequence", {"past": DYN(0, 63), "sequence": DYN(1, 64)}),
}


def session(model: onnx.ModelProto):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


@pytest.fixture(scope="module")
def cached():
    return build("gpt_cached", **SIZES)


@pytest.fixture(scope="module")
def program(cached):
    """Parsed once; its sizes are symbols."""
    made = migraphx.parse_onnx_buffer(cached.SerializeToString(), dim_params=DIMS)
    made.compile(migraphx.get_target("cpu"))
    return made


@pytest.fixture
def compiled(monkeypatch):
    """How often JAX compiled a function for us."""
    count = []
    original = jax.stages.Lowered.compile

    def counted(self, *args, **kwargs):
        count.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(jax.stages.Lowered, "compile", counted)
    return count


def prompt(batch: int) -> np.ndarray:
    return np.random.default_rng(batch).integers(0, SIZES["words"], (batch, PROMPT))


def nothing(batch: int) -> list:
    """The cache before the first word."""
    return [np.zeros((batch, HEADS, 0, DEPTH), np.float32)] * len(PARTS)


def inputs(ids, cache: list, total: int) -> dict:
    return {
        "input_ids": ids,
        "attention_mask": np.ones((len(ids), total), np.int64),
        **{f"past.{name}": value for name, value in zip(PARTS, cache, strict=True)},
    }


def arrays(values) -> list:
    return [np.asarray(v) for v in values]


def likeliest(logits: np.ndarray, text: np.ndarray) -> np.ndarray:
    """The likeliest word that the text does not have yet.

    Random weights would say one word over and over, and agree on it without a cache as well.
    """
    left = logits.copy()
    np.put_along_axis(left, text, -np.inf, -1)
    return left.argmax(-1)[:, None]


def generate(run, ids: np.ndarray, keep=arrays) -> tuple:
    """The words that `run` leads to one after the other, and the logits of each step."""
    cache, text, scores = nothing(len(ids)), ids, []
    for _ in range(STEPS):
        total = cache[0].shape[2] + ids.shape[1]
        logits, *cache = keep(run(inputs(ids, cache, total)))
        scores.append(np.asarray(logits)[:, -1])
        ids = likeliest(scores[-1], text)
        text = np.concatenate([text, ids], 1)
    return text[:, PROMPT:], np.stack(scores, 1)


@pytest.mark.parametrize("batch", [1, 2])
def test_words_are_those_of_onnxruntime(cached, program, compiled, batch):
    theirs = session(cached)
    mine, scores = generate(program.run, prompt(batch))
    wanted, wanted_scores = generate(lambda feeds: theirs.run(None, feeds), prompt(batch))
    np.testing.assert_array_equal(mine, wanted)
    atol = 1e-3 * np.abs(wanted_scores).max()
    np.testing.assert_allclose(scores, wanted_scores, rtol=1e-3, atol=atol)
    # the prompt, and one size for each word that follows
    assert len(compiled) <= STEPS
    known = len(compiled)
    again, _ = generate(program.run, prompt(batch))
    np.testing.assert_array_equal(again, mine)
    assert len(compiled) == known


@pytest.mark.parametrize("batch", [1, 2])
def test_words_are_those_without_a_cache(program, batch):
    """The same weights without a cache, on the whole text at once: each word follows the others."""
    whole = migraphx.parse_onnx_buffer(
        build("gpt", **SIZES).SerializeToString(),
        dim_params={k: DIMS[k] for k in ("batch", "sequence")},
    )
    whole.compile(migraphx.get_target("cpu"))
    words, scores = generate(program.run, prompt(batch))
    text = np.concatenate([prompt(batch), words], 1)
    logits = np.asarray(whole.run({"input_ids": text[:, :-1]})[0])[:, PROMPT - 1 :]
    for k in range(STEPS):
        np.testing.assert_array_equal(
            likeliest(logits[:, k], text[:, : PROMPT + k]), words[:, k : k + 1]
        )
    np.testing.assert_allclose(scores, logits, rtol=1e-3, atol=1e-3 * np.abs(logits).max())


def test_the_cache_may_stay_on_the_device(program):
    """Results are given back as they are, without a copy to NumPy."""
    words, _ = generate(program.run, prompt(2), keep=on_device)
    wanted, _ = generate(program.run, prompt(2))
    np.testing.assert_array_equal(words, wanted)


def on_device(values) -> list:
    return [jax.numpy.from_dlpack(v) for v in values]


# What is changed of the inputs of a step with a past of 7, and the parameter that is named.
DISAGREE = {
    "mask too long": ({"attention_mask": np.ones((1, 9), np.int64)}, "attention_mask"),
    "mask too short": ({"attention_mask": np.ones((1, 7), np.int64)}, "attention_mask"),
    "one past is shorter": (
        {"past.1.value": np.zeros((1, HEADS, 6, DEPTH), np.float32)},
        "past.1.value",
    ),
    "another batch": ({"past.0.value": np.zeros((2, HEADS, 7, DEPTH), np.float32)}, "past.0.value"),
    "more words": ({"input_ids": np.zeros((1, 2), np.int64)}, "input_ids|attention_mask"),
    "no words": ({"input_ids": np.zeros((1, 0), np.int64)}, "input_ids"),
}


@pytest.mark.parametrize("case", DISAGREE)
def test_sizes_that_disagree(program, case):
    change, named = DISAGREE[case]
    past = [np.zeros((1, HEADS, 7, DEPTH), np.float32)] * len(PARTS)
    feeds = inputs(np.zeros((1, 1), np.int64), past, 8)
    program.run(feeds)
    with pytest.raises(migraphx.Error, match=f"parameter:? ({named})"):
        program.run({**feeds, **change})
