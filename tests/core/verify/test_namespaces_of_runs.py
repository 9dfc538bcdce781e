"""What a recorded command line of ``bwrap`` promises: what our own namespaces have, and no more."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from recorded_panel import Agent, panel, said
from recorded_review import review
from specimens import build, copy
from team_files import outcome

from tripod.agents import isolation as isolated
from tripod.agents.isolation import GivenFiles, Home, ResolvedProgram, isolate
from tripod.agents.spec import Parameters
from tripod.decisions import writer as decisions_log
from tripod.team import adoption
from tripod.team.team import Team
from tripod.verify.check import Outcome
from tripod.verify.evidence import collect
from tripod.verify.isolation.runs import run_namespace, run_namespace_exceptions
from tripod.verify.run import run

BWRAP = "/usr/bin/bwrap"
OURS = (BWRAP, "--unshare-all", "--die-with-parent", "--tmpfs", "/tmp", "--cap-drop", "ALL")  # noqa: S108
SHARED = "/srv/shared"
NOTES = b"All that is known of it."
DIGEST = sha256(NOTES).hexdigest()


def named(*words: str, end: tuple[str, ...] = ("--", "oracle"), **order: Any) -> list[str]:
    """The exceptions of a run whose command line has these words beside our own."""
    order = {"argv": [*OURS, *words, *end], **order}
    return list(run_namespace_exceptions(order, {DIGEST}))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = build(str(tmp_path_factory.mktemp("sound")))
    with Team(root) as team:
        for number in range(2):
            decisions_log.log(
                team,
                decisions_log.DecisionRequest(
                    f"Choice {number}", ["alex"], "It is cheap.", refs=["live.chat:~L8"]
                ),
            )
    return root


@pytest.fixture
def root(sound: str, tmp_path: Path) -> str:
    return copy(sound, str(tmp_path))


def told(root: str, *words: str, end: tuple[str, ...] = ("--", "oracle"), **wrong: Any) -> Outcome:
    """What the check says of a review whose command line has these words beside our own."""
    review(root, argv=[*OURS, *words, *end], **wrong)
    with collect(root) as evidence:
        return outcome(run(evidence), "pythia-isolation")


# The whole verdict --------------------------------------------------------------------------------


def test_a_shared_folder_in_the_place_of_one_of_the_system_is_named(root: str) -> None:
    judged = told(root, "--bind", SHARED, "/etc/pki")
    assert (judged.said, judged.exceptions) == (
        "clean, except",
        (f"lent {SHARED} (not looked at): run c0ffee00",),
    )


def test_a_folder_of_the_system_that_can_be_written_is_named(root: str) -> None:
    judged = told(root, "--bind", "/usr", "/usr")
    assert (judged.said, judged.exceptions) == (
        "clean, except",
        ("lent /usr (not read-only): run c0ffee00",),
    )


@pytest.mark.parametrize("end", [("--", "oracle"), ("oracle",)])
def test_a_namespace_that_the_program_alone_is_told_of_is_none(
    root: str, end: tuple[str, ...]
) -> None:
    review(root, argv=[BWRAP, "--die-with-parent", *end, "--unshare-all"])
    with collect(root) as evidence:
        judged = outcome(run(evidence), "pythia-isolation")
    assert [finding.message for finding in judged.findings] == [
        "run c0ffee00: it is said to have run in a namespace, and its command line makes none"
    ]


def test_the_network_counts_where_bwrap_reads_it(root: str) -> None:
    judged = told(root, end=("--", "oracle", "--share-net"))
    assert (judged.said, judged.coverage["with the network"]) == ("clean", 0)


@pytest.mark.parametrize(
    ("words", "end", "exceptions", "blamed"),
    [
        (("--bind", SHARED, "/etc/pki"), (), [f"lent {SHARED} (not looked at)"], False),
        (("--bind", "/usr", "/usr"), (), ["lent /usr (not read-only)"], False),
        ((), ("--unshare-all",), [], True),
    ],
)
def test_the_runs_of_experts_are_judged_by_the_same_words(
    tmp_path: Path,
    words: tuple[str, ...],
    end: tuple[str, ...],
    exceptions: list[str],
    *,
    blamed: bool,
) -> None:
    adoption.init(str(tmp_path), project="panels", origin="panels.example/1")
    wrapped = () if blamed else ("--unshare-all",)
    argv = (BWRAP, *wrapped, "--cap-drop", "ALL", *words, "--", "panel", *end)
    panel(
        f"{tmp_path}/.nbs",
        lambda turn, _: Agent(said(turn.role, turn.persona), order={"argv": argv}),
    )
    with collect(f"{tmp_path}/.nbs") as evidence:
        judged = outcome(run(evidence), "nova-independence")
    assert [one.rpartition(": ")[0] for one in judged.exceptions] == exceptions
    assert any("its command line makes none" in f.message for f in judged.findings) is blamed


# Places of the system -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("/usr", "/usr"), ("/lib64", "/lib64"), ("/etc/pki", "/etc/pki"),
        ("/usr/share/zoneinfo/Etc/GMT+1", "/etc/localtime"),
        ("/etc/authselect/nsswitch.conf", "/etc/nsswitch.conf"),
        ("/run/systemd/resolve/stub-resolv.conf", "/etc/resolv.conf"),
        ("/run/NetworkManager/no-stub-resolv.conf", "/etc/resolv.conf"),
    ],
)  # fmt: skip
def test_the_system_in_its_own_place_is_no_exception(source: str, place: str) -> None:
    assert named("--ro-bind", source, place) == []


@pytest.mark.parametrize("option", ["--ro-bind", "--bind", "--dev-bind", "--ro-bind-try"])
@pytest.mark.parametrize(
    ("source", "place"),
    [
        (SHARED, "/etc/pki"), (SHARED, "/etc/alternatives"), (SHARED, "/usr"), ("/usr", "/bin"),
        (f"{SHARED}/resolv.conf", "/etc/resolv.conf"), ("/etc/secret", "/etc/pki"),
        ("/run/user/1000/resolv.conf", "/etc/resolv.conf"), ("/usr/src/p/.nbs", "/etc/pki"),
        ("/usr/share/zoneinfo/../../../srv", "/etc/localtime"), ("pki", "/etc/pki"),
        ("/usr/share/zoneinfo/UTC", "/etc/pki"), ("/etc/pki/", "/etc/pki"), ("", "/etc/pki"),
        ("/etc/pki", "/etc/../srv/pki"), ("/usr", "/usr/"),
    ],
)  # fmt: skip
def test_another_source_than_the_system_itself_is_lent(
    option: str, source: str, place: str
) -> None:
    assert named(option, source, place) == [f"lent {source} (not looked at)"]


@pytest.mark.parametrize(
    "option", ["--bind", "--bind-try", "--dev-bind", "--dev-bind-try", "--ro-bind-try"]
)
@pytest.mark.parametrize("place", ["/usr", "/lib", "/etc/pki"])
def test_the_system_is_bound_as_we_bind_it_or_named(option: str, place: str) -> None:
    assert named(option, place, place) == [f"lent {place} (not read-only)"]


def test_the_system_comes_before_what_covers_parts_of_it() -> None:
    cover, system = ("--tmpfs", "/usr/src/p"), ("--ro-bind", "/usr", "/usr")
    assert named(*system, *cover) == []
    assert named(*cover, *system) == ["lent /usr (over what was covered)"]
    assert named(*system, *cover, *system) == ["lent /usr (over what was covered)"]


# Options ------------------------------------------------------------------------------------------

FOREIGN = (
    "--args 5", "--bind-fd 5 /usr", "--ro-bind-fd 5 /usr", "--bind-data 5 /a", "--overlay-src /a",
    "--overlay /a /b /c", "--tmp-overlay /a", "--ro-overlay /a", "--mqueue /dev/mqueue",
    "--cap-add ALL", "--uid 0", "--gid 0", "--userns 5", "--userns2 5", "--pidns 5",
    "--unshare-user", "--unshare-net", "--unshare-user-try", "--disable-userns", "--hostname a",
    "--seccomp 5", "--add-seccomp-fd 5", "--exec-label a", "--file-label a", "--remount-ro /usr",
    "--chmod 0777 /a", "--setenv A b", "--unsetenv A", "--clearenv", "--lock-file /a",
    "--sync-fd 5", "--block-fd 5", "--info-fd 5", "--json-status-fd 5", "--as-pid-1", "--size 5",
    "--new-session", "--never-heard-of", "-x",
)  # fmt: skip


@pytest.mark.parametrize("words", FOREIGN)
def test_an_option_that_we_never_write_promises_nothing(words: str) -> None:
    option = words.split(maxsplit=1)[0]
    assert named(*words.split()) == [
        f"its namespace was made with {option}, which is not known here"
    ]


@pytest.mark.parametrize(
    "words",
    [
        "--dev /usr", "--proc /srv", "--cap-drop CAP_SYS_ADMIN", "--symlink /srv/shared /bin",
        "--symlink usr/../srv /bin", "--symlink usr/bin /etc/pki", "--symlink ../srv /lib",
        "--symlink usrx /bin", "--perms 0777",
    ],
)  # fmt: skip
def test_an_option_with_words_that_we_never_write_promises_nothing(words: str) -> None:
    assert named(*words.split()) == [
        f"its namespace was made with {words}, which is not known here"
    ]


def test_an_unknown_option_hides_no_network_and_shows_no_namespace() -> None:
    assert run_namespace([BWRAP, "--args", "5", "--unshare-all", "--share-net"]) == (False, True)


@pytest.mark.parametrize("words", [("--ro-bind", "/usr", "/usr"), ("--ro-bind", "/a", "/a")])
def test_capabilities_that_were_kept_are_named(words: tuple[str, ...]) -> None:
    argv = [BWRAP, "--unshare-all", *words, "--", "oracle"]
    assert list(run_namespace_exceptions({"argv": argv}, ()))[-1] == (
        "its capabilities, by which it could change its namespace"
    )


# What is not in the recorded words ----------------------------------------------------------------


@pytest.mark.parametrize("end", [(), ("--",)])
def test_a_parameter_becomes_no_option_of_bwrap(root: str, end: tuple[str, ...]) -> None:
    order = {"takes": {"model": ("--bind", "/srv", "{}")}, "parameters": Parameters(model="/srv")}
    judged = told(root, end=end, order=order)
    said_so = "its command line names no program: what came behind it is not known here"
    assert judged.exceptions == (f"{said_so}: run c0ffee00",)


@pytest.mark.parametrize("word", [0, 1, len(OURS)])
def test_a_descriptor_in_the_place_of_another_word_is_named(root: str, word: int) -> None:
    judged = told(root, order={"sealed": {word: NOTES}}, files=(NOTES,))
    assert judged.exceptions == (
        f"its command line had other words than are recorded ({word}): run c0ffee00",
    )


def test_a_descriptor_with_two_contents_was_not_looked_at() -> None:
    file = ("--perms", "0444", "--ro-bind-data", "memory", "/a")
    one = {"word": len(OURS) + 3, "sha256": DIGEST}
    assert named(*file, sealed=[one]) == []
    for other in ({**one, "sha256": "0" * 64}, one):
        assert named(*file, sealed=[other, one]) == ["lent /a (not looked at)"]


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "GLIBC_TUNABLES"])
def test_a_variable_that_changes_bwrap_itself_is_named(root: str, name: str) -> None:
    judged = told(root, order={"set_env": {name: f"{SHARED}/a.so", "TERM": "dumb"}})
    assert judged.exceptions == (f"its namespace was made with the variable {name}: run c0ffee00",)


# Our own namespaces -------------------------------------------------------------------------------


@pytest.mark.parametrize("network", [False, True])
def test_what_we_build_is_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, network: bool
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a").write_bytes(NOTES)
    given = GivenFiles(
        {f"{notes}/a": (NOTES, 0o444), f"{tmp_path}/b": (NOTES, 0o444)}, (f"{notes}",)
    )
    monkeypatch.setattr(isolated, "_bwrap", lambda: ("/usr/bin/true", None))
    program = ResolvedProgram(("/usr/bin/true", "--share-net"), (f"{notes}", f"{tmp_path}/b"))
    home = Home({"config/login": NOTES}, "config", "config")
    hidden = ["/usr/share/nothing", str(tmp_path / "hidden")]
    place = isolate(
        program, "/f", hidden, "/usr/share/nothing", network=network, given=given, home=home
    )
    assert place.level == "namespace", place.problem
    assert {"--file", "--ro-bind-data", "--ro-bind"} < set(place.argv)
    sealed = [
        {"word": word, "sha256": sha256(data).hexdigest()} for word, data in place.sealed.items()
    ]
    order = {"argv": [BWRAP, *place.argv[1:]], "sealed": sealed, "set_env": place.env}
    assert list(run_namespace_exceptions(order, {DIGEST})) == ["the network"] * network
    assert run_namespace(place.argv) == (True, network)
