"""A user's own functions: what makes them trace again, and what does not."""

import pytest
import tensorflow as tf

from xtts.shared.errors import LockstepError
from xtts.trainer.doctor.user_code.trace import watch_calls


def test_a_function_retraced_by_a_python_scalar(module):
    name = module("""
        @tf.function
        def train_step(batch, scale):
            return tf.reduce_sum(batch) * scale

        def one_step(number):
            return train_step(tf.ones([4, 8]), 1.0 / (1 + number))
    """)
    report = watch_calls(f"{name}:one_step", 5)
    (finding,) = report.findings
    assert finding.what == f"train_step ({name}.py:4) traced again 4 times: scale changed"
    assert finding.cause == "scale was Python float 1.0, then Python float 0.5"
    assert finding.fix.startswith("pass tf.constant(scale) or set input_signature")
    assert "a call that is traced again takes" in finding.gain
    assert report.sections[0].facts[0].value == {"calls": 5, "traces": 5, "functions": 1}


def test_shapes_and_types_and_places_inside_arguments_are_named(module):
    name = module("""
        @tf.function
        def shaped(batch):
            return batch["mel"][0] + 1

        @tf.function
        def typed(x):
            return x + 1

        def one_step(number):
            shaped({"mel": [tf.ones([2, 5 + number % 2])]})
            typed(np.ones(3, np.float32 if number % 2 else np.float64))
    """)
    shaped, typed = watch_calls(f"{name}:one_step", 4).findings
    assert "shaped" in shaped.what
    assert "once: batch['mel'][0] changed" in shaped.what
    assert shaped.cause == "batch['mel'][0] was tensor float32[2, 5], then tensor float32[2, 6]"
    assert shaped.fix.startswith("pad to fixed shapes")
    assert "typed" in typed.what
    assert typed.cause == "x was tensor float64[3], then tensor float32[3]"
    assert typed.fix.startswith("cast it")


HEALTHY = {
    "two methods of one class, and those of many objects": """
        class Trainer:
            @tf.function
            def train_step(self, batch):
                return batch + 1

            @tf.function
            def val_step(self, batch):
                return batch - 1

        trainers = [Trainer() for _ in range(6)]

        def one_step(number):
            trainers[0].train_step(tf.ones([2]))
            trainers[0].val_step(tf.ones([3]))
            trainers[number].train_step(tf.ones([2]))
    """,
    "one for each bucket, made before": """
        def make():
            return tf.function(lambda batch: batch + 1)

        steps, alike = [make() for _ in range(6)], [make() for _ in range(6)]

        def one_step(number):
            steps[number](tf.ones([2 + number]))
            alike[number](tf.ones([2]))
    """,
    "one for each bucket, made when it is first needed": """
        steps = {}

        def one_step(number):
            if number not in steps:
                steps[number] = tf.function(lambda batch: batch + 1)
            steps[number](tf.ones([2 + number]))
    """,
    "one more for the same arguments, used from then on": """
        steps = []

        def one_step(number):
            if number in (0, 3):
                steps.append(tf.function(lambda batch: batch + 1))
            for step in steps:
                step(tf.ones([2]))
    """,
    "many for one use, made in the first round": """
        def one_step(number):
            for _ in range(3 if number == 0 else 0):
                tf.function(lambda batch: batch + 1)(tf.ones([2]))
    """,
    "defaults, nothing, keyword arguments, a kept dataclass, a partial": """
        from dataclasses import dataclass
        from functools import partial

        @dataclass
        class Options:
            scale: float

            __hash__ = object.__hash__

        @tf.function(experimental_follow_type_hints=True)
        def step(x: tf.Tensor, *rest, options=None, training=False, **more):
            return x + 1

        options = Options(0.5)
        bound = tf.function(partial(lambda scale, x: x * scale, 2.0))

        def one_step(number):
            bound(tf.ones([2]))
            if number % 2:
                step(tf.constant(float(number)), options=options, mask=None)
            else:
                step(tf.constant(float(number)), options=options, training=False, mask=None)
    """,
    "a Keras layer, and a function inside another": """
        layer = tf.keras.layers.Dense(2)
        called = tf.function(layer)
        inner = tf.function(lambda x: x + 1)

        @tf.function
        def outer(x):
            return inner(x) + inner(tf.reshape(x, [2, 1]))

        def one_step():
            called(tf.ones([2, 2]))
            outer(tf.ones([2]))
    """,
}


@pytest.mark.parametrize("source", HEALTHY.values(), ids=range(len(HEALTHY)))
def test_healthy_code_has_no_finding(module, source):
    report = watch_calls(f"{module(source)}:one_step", 6)
    assert report.findings == []
    assert all(fact.value["traces"] == fact.value["functions"] for fact in report.sections[0].facts)


def test_methods_are_reported_by_name(module):
    report = watch_calls(f"{module(next(iter(HEALTHY.values())))}:one_step", 6)
    train, validate = report.sections[0].facts
    assert train.name.startswith("Trainer.train_step (foreign_")
    assert train.text == "12 calls, 6 traces of 6 tf.functions"
    assert validate.name.startswith("Trainer.val_step (foreign_")
    assert validate.text == "6 calls, 1 traces"


@pytest.mark.parametrize(
    "call",
    [
        "tf.function(body)(tf.ones([2]))",
        "tf.function(body)(tf.ones([2 + number]))",
        "Trainer().train_step(tf.ones([2]))",
        "Trainer().own_step(tf.ones([2 + number]))",
        "kept.append(tf.function(body)); kept[-1](tf.ones([2]))",
    ],
)
def test_a_function_created_in_every_call(module, call):
    name = module(f"""
        kept = []

        def body(x):
            return x * 2

        class Trainer:
            def __init__(self):
                self.own_step = tf.function(self.body)

            def body(self, x):
                return x * 2

            @tf.function
            def train_step(self, x):
                return x * 2

        def one_step(number):
            {call}
    """)
    (finding,) = watch_calls(f"{name}:one_step", 4).findings
    assert finding.what.endswith(") created again 3 times")
    assert "a new tf.function has no traces" in finding.cause
    assert finding.fix.startswith("create the tf.function, and the object whose method it is, once, outside")


@pytest.mark.parametrize(
    ("call", "cause", "fix"),
    [
        ("Options(), 0", "options was Options object 1, then Options object 2", "create options once"),
        ("Options(), number", "x was Python int 0, then Python int 1", "pass tf.constant(x)"),
        ("None, None if number else tf.ones([2])", "x was tensor float32[2], then None", "give every call the same"),
        ("None, [0] * number", "x was list of 0, then list of 1", "give every call the same arguments"),
        ("**({'options': None} if number else {}), x=number", "x was Python int 0, then Python int 1", "pass tf"),
        ("Strange(), number", "x was Python int 0, then Python int 1", "pass tf.constant(x)"),
    ],
)
def test_the_argument_that_changed_is_named(module, call, cause, fix):
    name = module(f"""
        from dataclasses import dataclass

        @dataclass(frozen=True)
        class Options:
            scale: float = 0.5

        class Strange:
            dtype, shape = "of no library known", (2, 3)

        @tf.function
        def step(options=None, x=0):
            return 1

        def one_step(number):
            step({call})
    """)
    (finding,) = watch_calls(f"{name}:one_step", 2).findings
    assert finding.cause == cause
    assert finding.fix.startswith(fix)


def test_a_trace_that_no_argument_explains(module):
    name = module("""
        first, second = tf.Variable(1.0), tf.Variable(2.0)

        @tf.function
        def step(a, b):
            return a.assign(b)

        def one_step(number):
            step(first, second if number % 2 else first)
    """)
    (finding,) = watch_calls(f"{name}:one_step", 4).findings
    assert finding.what == f"step ({name}.py:6) traced again once: no argument changed"
    assert finding.cause.startswith("the arguments were equal")


def test_a_steady_function_has_no_finding_and_is_left_as_it_was(module):
    name = module("""
        @tf.function
        def train_step(batch, scale):
            return tf.reduce_sum(batch) * scale

        def one_step():
            return train_step(tf.ones([4, 8]), tf.constant(0.5))
    """)
    polymorphic = type(tf.function(lambda: None))
    before = polymorphic.__call__, polymorphic.__init__
    report = watch_calls(f"{name}:one_step", 5)
    assert report.healthy
    assert report.sections[0].facts[0].text == "5 calls, 1 traces"
    assert (polymorphic.__call__, polymorphic.__init__) == before


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("{}:missing", "has no missing"),
        ("{}", "not MODULE:NAME"),
        ("./{}.py:step", "not MODULE:NAME"),
        ("no_such_module:f", "no_such_module:f: module no_such_module cannot be imported"),
        ("{}.inner:f", "inner cannot be imported"),
        ("{}:step", "a tf.function that needs the arguments x; name a plain function that makes one call"),
        ("{}:two", "a function of 2 arguments, expected none or one"),
        ("{}:named", "a function that needs the keyword arguments number"),
        ("{}:max", "a function without a readable signature; name a plain function"),
        ("{}:batches", "gives a generator, which nobody runs; name a plain function"),
        ("{}:VALUE", "a int, expected a function"),
        ("{}:fails", "raised ZeroDivisionError, see above"),
        ("{}:leaves", "raised SystemExit, see above"),
    ],
)
def test_a_target_that_cannot_be_called_is_an_error(module, target, message):
    name = module("""
        VALUE = 3
        step = tf.function(lambda x: x)
        max = max

        def two(a, b):
            return a

        def named(*, number):
            return number

        def batches():
            yield step(tf.ones([2]))

        def fails():
            return 1 / 0

        def leaves():
            raise SystemExit(0)
    """)
    with pytest.raises(LockstepError, match=message):
        watch_calls(target.format(name), 2)
