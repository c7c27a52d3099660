"""Studies of Optuna: what `fanin.tune` makes of its ranges, samplers, pruners and storages."""

import importlib.util
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fanin import _fanin
from fanin._space import Choice, Range
from fanin.scenario import Setting, _toml

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

_SAMPLERS = {
    "tpe": "TPESampler",
    "gp": "GPSampler",
    "cmaes": "CmaEsSampler",
    "nsgaii": "NSGAIISampler",
    "random": "RandomSampler",
}
# Packages that Optuna imports at a sampler's first trials.
_NEEDS = {"gp": ("scipy", "torch"), "cmaes": ("cmaes",)}
# Set for a trial beyond the number of all, which two processes asked for at the same time.
_GIVEN_BACK = "given_back"
# Searches that run in this process; the trials of others with its number are abandoned.
RUNNING: set[str] = set()


def import_optuna() -> Any:
    """Import Optuna."""
    try:
        import optuna
        import optuna.storages.journal
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "fanin.tune needs Optuna 5: pip install 'fanin[tune]'", name=error.name
        ) from None
    return optuna


@contextmanager
def quiet(optuna: Any) -> Iterator[None]:
    """Keep Optuna from a line for each trial; warnings stay."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.WARNING))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def open_study(optuna: Any, wanted: Any, **about: Any) -> Any:
    """Return the study of a storage, which is a file or one of Optuna's; a new one where it has none."""
    if not isinstance(wanted, str | os.PathLike):
        return optuna.create_study(storage=wanted, load_if_exists=True, **about)
    try:
        backend = optuna.storages.journal.JournalFileBackend(os.fspath(wanted))
        storage = optuna.storages.JournalStorage(backend)
        return optuna.create_study(storage=storage, load_if_exists=True, **about)
    except OSError:
        raise
    except Exception as error:
        # Optuna says what is wrong with a line of a journal in many ways, and never of which file.
        raise ValueError(f"{os.fspath(wanted)} is damaged, or is not a study: {error}") from error


def distribution(optuna: Any, axis: Range | Choice) -> Any:
    if isinstance(axis, Choice):
        return optuna.distributions.CategoricalDistribution(list(choices(axis)))
    low, high = axis.numbers.low, axis.numbers.high
    return optuna.distributions.IntDistribution(low, high, log=low > 0)


def choices(axis: Choice) -> dict[Any, Setting]:
    """Return the values of a choice by what Optuna stores: themselves, or TOML for a list or a table."""
    return {value if isinstance(value, str | int | float) else _toml(value): value for value in axis.values}


def sampler_of(optuna: Any, wanted: Any, seed: int, trials: int) -> Any:
    if not isinstance(wanted, str):
        if not isinstance(wanted, optuna.samplers.BaseSampler):
            raise TypeError(f"{type(wanted).__name__} is not a sampler of Optuna")
        return wanted
    if wanted not in _SAMPLERS:
        raise ValueError(f"there is no sampler `{wanted}`; the samplers are {', '.join(_SAMPLERS)}")
    for package in _NEEDS.get(wanted, ()):
        if importlib.util.find_spec(package) is None:
            raise ModuleNotFoundError(
                f"the sampler `{wanted}` needs {package}: pip install {package}", name=package
            )
    return getattr(optuna.samplers, _SAMPLERS[wanted])(seed=(seed * 1_000_003 + trials) % 2**32)


def pruner_of(optuna: Any, wanted: Any) -> Any:
    if isinstance(wanted, optuna.pruners.BasePruner):
        return wanted
    if not isinstance(wanted, bool):
        raise TypeError(f"{type(wanted).__name__} is not a pruner of Optuna")
    if not wanted:
        return optuna.pruners.NopPruner()

    class ClearlyWorse(optuna.pruners.BasePruner):  # type: ignore[misc]
        """The rule of `fanin tune`: worse than the best one by 5 % and by three standard deviations."""

        def prune(self, study: Any, trial: Any) -> bool:
            best, step = best_trial(study), trial.last_step
            if best is None or step not in best.intermediate_values:
                return False
            sign = -1.0 if study.direction == optuna.study.StudyDirection.MAXIMIZE else 1.0
            return _fanin.is_clearly_worse(
                sign * trial.intermediate_values[step],
                sign * best.intermediate_values[step],
                best.user_attrs["values"],
            )

    return ClearlyWorse()


def best_trial(study: "optuna.Study") -> "FrozenTrial | None":
    """Return the best of the trials that are complete and meet all constraints."""
    try:
        return study.best_trial
    except ValueError:
        return None


def counted(study: "optuna.Study") -> "list[FrozenTrial]":
    """Return the trials of a study by number, without those that were given back."""
    return [trial for trial in study.get_trials(deepcopy=False) if not trial.user_attrs.get(_GIVEN_BACK)]


def give_back(study: "optuna.Study", trial: "optuna.Trial") -> None:
    """End a trial that is not made; a study cannot forget it."""
    trial.set_user_attr(_GIVEN_BACK, True)
    study.tell(trial, state=import_optuna().trial.TrialState.FAIL)


def is_abandoned(owner: str) -> bool:
    """Return whether the search that began a trial has ended; of one on another host nothing is known."""
    host, _, rest = owner.partition(":")
    number, _, _ = rest.partition(":")
    if host != socket.gethostname() or not number.isdigit():
        return False
    if int(number) == os.getpid():
        return owner not in RUNNING
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
