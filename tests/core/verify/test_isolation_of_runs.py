"""What is made of Pythia's own runs: what they were given, where they ran, what they wrote."""

import json
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import drafts
import pytest
import recorded_review
from recorded_review import RUN, answer, asked_for, posted, review, run_alone
from specimens import build, copy, forge, read
from story import Clock, Original
from team_files import outcome

from tripod.agents.spec import McpServer, Parameters
from tripod.bus import events as bus
from tripod.chat import writer as chat_send
from tripod.decisions import writer as decisions_log
from tripod.ledger.entry import Draft
from tripod.recovery import redaction
from tripod.team import adoption
from tripod.team.act import draft_event_for_act
from tripod.team.team import Team
from tripod.verify.check import Outcome
from tripod.verify.checks import assessment_complete, pythia_isolation
from tripod.verify.evidence import collect
from tripod.verify.isolation.breach import tool_servers_of_stream
from tripod.verify.isolation.runs import run_namespace_exceptions
from tripod.verify.run import run

QUOTED = (
    "Frankly I would rather lose a day than explain to the customer why the queue was empty twice"
)
"""What somebody said in the chat: more than twelve words."""


def decide(team: Team, title: str, rationale: str) -> None:
    decisions_log.log(
        team, decisions_log.DecisionRequest(title, ["alex"], rationale, refs=["live.chat:~L8"])
    )


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A team whose chat says something that no decision says, with a checkpoint to answer."""
    root = build(str(tmp_path_factory.mktemp("sound")))
    with Team(root) as team:
        chat_send.send(team, "live", "alex", QUOTED)
        for number in range(2):
            decide(team, f"Choice {number}", "It is cheap.")
    return root


@pytest.fixture
def root(sound: str, tmp_path: Path) -> str:
    return copy(sound, str(tmp_path))


def isolation(root: str) -> Outcome:
    with collect(root) as evidence:
        report = run(evidence)
    others = [o for o in report.outcomes if o.failures and o.check != "pythia-isolation"]
    assert others == []
    return outcome(report, "pythia-isolation")


def messages(told: Outcome) -> list[str]:
    return [finding.message for finding in told.findings]


def test_a_run_in_a_namespace_that_was_given_the_log_is_clean(root: str) -> None:
    review(root)
    told = isolation(root)
    assert (told.verdict, told.reason) == ("clean", "")
    assert told.coverage["assessments"] == told.coverage["in a namespace"] == 1
    assert told.coverage["from outside"] == told.coverage["in a folder"] == 0
    with Team(root) as team:
        said = team.store.db.execute("SELECT count(*) FROM lines").fetchone()[0]
    assert int(told.coverage["chat texts"]) > said


DISGUISED = {
    "forms": QUOTED.replace("queue", "\uff51ueue").replace("day", "da\uff59"),
    "accents": QUOTED.replace("explain", "expla\u00efn").replace("rather", "rathe\u0301r"),
    "unseen": QUOTED.replace("customer", "cus\u00adto\u200bmer").replace("would", "wou\u2060ld"),
    "signs": QUOTED.replace(" ", "_"),
    "dashes": QUOTED.replace(" ", "\u2014"),
    "case": QUOTED.upper(),
    "controls": QUOTED.replace("customer", "cus\x01to\x7fmer").replace("would", "wou\x9bld"),
    "blank letters": QUOTED.replace("rather", "rat\u3164her\u2065").replace("day", "d\uffa0ay"),
    "colours": " ".join(f"\x1b[1m{word}\x1b[0m" for word in QUOTED.split()),
}


@pytest.mark.parametrize("text", DISGUISED.values(), ids=DISGUISED)
def test_an_echo_is_seen_in_each_disguise_that_costs_nothing(root: str, text: str) -> None:
    review(root, prompt=f"Consider this: {text}.")
    assert [m for m in messages(isolation(root)) if "holds 12 words in a row of chat live" in m]


def test_a_decision_that_quotes_the_chat_is_told_to_the_scribe_and_counted(root: str) -> None:
    with Team(root) as team:
        for title, rationale, artefact, tag in (
            ("Quoted", DISGUISED["accents"], "a", "b"),
            (QUOTED, "So it is.", "a", "b"),
            ("Artefact", "So it is.", QUOTED, "b"),
            ("Tag", "So it is.", "a", QUOTED),
        ):
            ref = ["live.chat:~L8"]
            request = decisions_log.DecisionRequest(
                title, ["ann"], rationale, ref, [artefact], [tag]
            )
            (warning,) = decisions_log.log(team, request).warnings
            assert warning.startswith("12 words in a row of it stand in the chat as well")
        plain = decisions_log.DecisionRequest(
            "A", ["ann"], " ".join(QUOTED.split()[:11]), ["live.chat:~L8"]
        )
        assert decisions_log.log(team, plain).warnings == []
    review(root)
    told = isolation(root)
    assert (told.verdict, told.coverage["decisions that quote the chat"]) == ("clean", 4)


@pytest.mark.parametrize(
    "lines",
    [
        f"- **Note:** {QUOTED}\n",
        f"{QUOTED}\n- **Rationale:** So.\n",
        f"- **Rationale:** So.\n\n---\n\n{QUOTED}\n",
        f"- **Rationale:** So.\n- **Rationale:** {QUOTED}\n",
    ],
    ids=["a field of another name", "before the fields", "behind the rule", "a field twice"],
)
def test_a_decision_that_quotes_the_chat_outside_of_its_fields_is_counted(
    root: str, lines: str
) -> None:
    with open(f"{root}/scribe/log.md", "a", encoding="utf-8") as file:
        # The ID carries the decision's time: it must not be before the messages that it refers to.
        number = int(time.time()) + 60
        front = f"### D-{number} Odd\n- **Chat ref:** live.chat:~L8\n- **Participants:** ann\n"
        file.write(f"\n---\n\n{front}{lines}")
    review(root)
    assert isolation(root).coverage["decisions that quote the chat"] == 1


def test_only_the_newest_messages_are_looked_at_when_a_decision_is_logged(root: str) -> None:
    quoting = decisions_log.DecisionRequest("Quoted", ["ann"], QUOTED, ["live.chat:~L8"])
    with Team(root) as team:
        for number in range(500):
            bus.publish(team, "ann", f"t{number}", "low", "")
        assert decisions_log.log(team, quoting).warnings == []


def test_in_a_folder_nobody_can_tell(root: str) -> None:
    review(root, level="folder", argv=["oracle"])
    told = isolation(root)
    assert told.verdict == "cannot tell"
    assert not told.past
    assert "ran in a folder, not in a namespace (bwrap is not installed)" in told.reason
    assert told.coverage["in a folder"] == 1


def test_without_a_word_on_how_it_was_kept_apart_nobody_can_tell(root: str) -> None:
    review(root, level=None)
    assert "no entry says how it was kept from the chat" in isolation(root).reason


def test_a_namespace_that_no_command_line_made_is_named(root: str) -> None:
    review(root, argv=["oracle"])
    (message,) = messages(isolation(root))
    assert message == (
        "run c0ffee00: it is said to have run in a namespace, and its command line makes none"
    )


def test_a_namespace_that_hides_too_little_leaves_it_untold(root: str) -> None:
    review(root, hidden=["chat", "ledger.db", "record"])
    told = isolation(root)
    assert told.verdict == "cannot tell"
    assert "nothing says that events, workers did not exist where it ran" in told.reason


def test_the_report_says_that_it_could_reach_the_network(root: str) -> None:
    review(root, argv=["/usr/bin/bwrap", "--unshare-all", "--share-net", "--", "oracle"])
    told = isolation(root)
    assert (told.said, told.coverage["with the network"]) == ("clean, except", 1)
    assert told.exceptions == ("the network: run c0ffee00",)


# What it had that nobody looked at ---------------------------------------------------------------

BWRAP = "/usr/bin/bwrap"
NOTES = b"All that is known of it."


@pytest.mark.parametrize(
    ("words", "exceptions"),
    [
        (["--ro-bind", "/usr", "/usr", "--tmpfs", "/tmp", "--dev", "/dev"], []),  # noqa: S108
        (["--ro-bind", "/run/systemd/resolv.conf", "/etc/resolv.conf"], []),
        (["--symlink", "usr/bin", "/bin", "--cap-drop", "ALL", "--proc", "/proc"], []),
        (["--ro-bind", "/srv/notes", "/srv/notes"], ["lent /srv/notes (not looked at)"]),
        (["--ro-bind", "/srv/notes", "/usr"], ["lent /srv/notes (not looked at)"]),
        (["--bind", "/srv/home", "/run/tripod/home"], ["lent /srv/home (not looked at)"]),
        (["--ro-bind", "/etc/secret", "/etc/secret"], ["lent /etc/secret (not looked at)"]),
        (["--bind-try", "/a", "/a", "--share-net"], ["lent /a (not looked at)", "the network"]),
        (
            ["--overlay-src", "/srv", "--ro-bind", "/a", "/a"],
            ["its namespace was made with --overlay-src, which is not known here"],
        ),
    ],
)
def test_what_was_bound_from_the_disk_is_in_the_verdict(
    root: str, words: list[str], exceptions: list[str]
) -> None:
    review(root, argv=[BWRAP, "--unshare-all", "--cap-drop", "ALL", *words, "--", "oracle"])
    told = isolation(root)
    assert list(told.exceptions) == [f"{one}: run c0ffee00" for one in exceptions]
    assert told.said == ("clean, except" if exceptions else "clean")


ODD: tuple[Any, ...] = (None, 5, True, "x", [], [[]], [{}], {}, {"word": 3}, [{"word": 3}])


@pytest.mark.parametrize("name", ["argv", "env", "secrets", "sealed"])
@pytest.mark.parametrize("value", ODD)
def test_an_order_of_any_shape_breaks_nothing(name: str, value: Any) -> None:
    argv = [BWRAP, "--unshare-all", "--file", "memory", "/a", "--", "oracle"]
    order = {"argv": argv, "env": [], "secrets": {}, "sealed": [], name: value}
    assert all(isinstance(one, str) for one in run_namespace_exceptions(order, {"x"}))
    sealed = [{"word": 3, "sha256": value}]
    assert list(run_namespace_exceptions({"argv": argv, "sealed": sealed}, {"y"}))


@pytest.mark.parametrize(
    "line", ["{", "[" * 5000, "{" * 5000, "{}", '{"type": {}, "tools": 5}', "x"]
)
def test_a_line_of_any_shape_shows_no_server(line: str) -> None:
    assert list(tool_servers_of_stream(line)) == []


def test_a_command_line_that_is_cut_off_promises_nothing(root: str) -> None:
    review(root, argv=[BWRAP, "--unshare-all", "--ro-bind", "/a"])
    assert isolation(root).exceptions == (
        "its namespace was made with --ro-bind, which is not known here: run c0ffee00",
    )


@pytest.mark.parametrize(
    ("given", "exceptions"),
    [
        ((NOTES,), ()),
        ((), ("lent /notes.md (not looked at): run c0ffee00",)),
        ((b"other",), ("lent /notes.md (not looked at): run c0ffee00",)),
    ],
)
def test_a_file_in_memory_was_looked_at_if_it_is_an_entry(
    root: str, given: tuple[bytes, ...], exceptions: tuple[str, ...]
) -> None:
    argv = [BWRAP, "--unshare-all", "--perms", "0444", "--file", "memory", "/notes.md", "oracle"]
    review(root, argv=argv, order={"sealed": {5: NOTES}}, files=given)
    assert isolation(root).exceptions == exceptions


@pytest.mark.parametrize("data", [b"PK\x03\x04\x00", b"\xff\xfe\x00h", b"b0nano 7\0"])
def test_a_file_that_is_no_text_was_not_looked_at(root: str, data: bytes) -> None:
    argv = [BWRAP, "--unshare-all", "--ro-bind-data", "memory", "/notes.swp", "oracle"]
    review(root, argv=argv, order={"sealed": {3: data}}, files=(data,))
    assert isolation(root).exceptions == ("lent /notes.swp (not looked at): run c0ffee00",)


def test_variables_whose_values_nobody_recorded_are_in_the_verdict(root: str) -> None:
    review(root, order={"env": ("TZ", "API_KEY"), "secrets": {"TOKEN": "s"}})
    told = isolation(root)
    assert told.exceptions == (
        "handed the variables API_KEY, TOKEN, TZ (not looked at): run c0ffee00",
    )


def test_a_variable_that_quotes_the_chat_is_found(root: str) -> None:
    review(root, order={"set_env": {"TZ": QUOTED}})
    (message,) = messages(isolation(root))
    assert message.startswith("run c0ffee00: its order holds 12 words in a row of chat live")


def test_a_bwrap_that_is_not_the_systems_is_in_the_verdict(root: str) -> None:
    review(root, argv=["/home/me/bin/bwrap", "--unshare-all", "oracle"])
    assert isolation(root).exceptions == (
        "its namespace was made by /home/me/bin/bwrap: run c0ffee00",
    )


def test_a_bwrap_that_is_not_the_recorded_one_is_named(root: str) -> None:
    review(root)
    altered(root, "pythia.isolated", bwrap={"path": "/usr/local/bin/bwrap", "sha256": "0" * 64})
    assert messages(isolation(root)) == [
        "run c0ffee00: another program than /usr/local/bin/bwrap is said to make its namespace"
    ]


def test_a_policy_takes_no_exceptions(root: str) -> None:
    review(root, argv=[BWRAP, "--unshare-all", "--share-net", "oracle"])
    (Path(root) / "policy.yaml").write_text("exceptions: cannot-tell\n")
    told = isolation(root)
    assert (told.verdict, told.reason) == ("cannot tell", "except: the network: run c0ffee00")
    with collect(root) as evidence:
        assert run(evidence).exit_code == 3


@pytest.mark.parametrize(
    ("shown", "name"),
    [
        ({"type": "tool_use", "name": "mcp__wiki__search", "input": {}}, "wiki"),
        ({"type": "mcp_tool_use", "server_name": "wiki", "name": "search"}, "wiki"),
        ({"type": "mcp_tool_call", "server": "wiki", "tool": "search"}, "wiki"),
        ({"type": "server_tool_use", "name": "web_search"}, "of the model (web_search)"),
        ({"type": "system", "mcp_servers": [{"name": "wiki", "status": "connected"}]}, "wiki"),
        ({"type": "system", "tools": ["Read", "mcp__wiki__search"]}, "wiki"),
    ],
)
@pytest.mark.parametrize("where", ["stdout", "transcript"])
def test_tools_of_an_unknown_server_cannot_be_told(
    root: str, shown: dict[str, Any], name: str, where: str
) -> None:
    with Team(root) as team:
        text = answer(asked_for(team))
    lines = [{"type": "assistant", "content": [shown]}, {"type": "result", "result": text}]
    data = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    review(root, **{where: data})
    told = isolation(root)
    assert told.verdict == "cannot tell"
    assert f"its stream shows tools of the server {name!r}" in told.reason


# What it was given -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "quoted",
    [
        QUOTED,
        QUOTED.upper(),
        QUOTED.replace(" ", "\n> "),
        f"- **{QUOTED}**,",
        " ".join(QUOTED.split()[2:14]),
    ],
)
def test_a_line_of_the_chat_in_her_prompt_is_found(root: str, quoted: str) -> None:
    review(root, extra=f"\nNote well: {quoted}")
    (finding,) = isolation(root).findings
    assert finding.message.startswith(
        "run c0ffee00: its prompt holds 12 words in a row of chat live, message 7"
    )
    assert "rather lose a day than explain to the customer" in finding.evidence[0]


@pytest.mark.parametrize(
    "words",
    [
        " ".join(QUOTED.split()[:11]),
        " ".join(f"{word} so" for word in QUOTED.split()),
        "Frankly, a day lost is better than two empty queues that a customer asks about.",
    ],
)
def test_fewer_words_or_others_are_no_echo(root: str, words: str) -> None:
    review(root, extra=f"\nNote well: {words}")
    assert isolation(root).verdict == "clean"


def test_what_a_decision_quotes_may_be_quoted(root: str) -> None:
    with Team(root) as team:
        for number in range(3):
            decide(team, f"Try again {number}", QUOTED)
    asked = review(root, text=None)
    with Team(root) as team, team.act() as act:
        posted(act, asked, answer(asked), RUN)
    assert isolation(root).verdict == "clean"


def test_a_decision_after_the_checkpoint_excuses_nothing(root: str) -> None:
    review(root, extra=QUOTED)
    with Team(root) as team:
        decide(team, "Try again", QUOTED)
    assert len(messages(isolation(root))) == 1


def test_what_was_said_later_is_no_source(root: str) -> None:
    later = "We were told that nobody measured any of this and that it will be slow one day"
    review(root, extra=f"\n{later}", stdout=b"")
    with Team(root) as team:
        chat_send.send(team, "live", "alex", later)
    told = isolation(root)
    assert not any("words in a row" in message for message in messages(told))


def test_a_raw_line_of_a_chat_file_is_found(root: str) -> None:
    lines = (Path(root) / "chat/live.chat").read_bytes().splitlines()
    review(root, stderr=b"reading\n" + lines[7] + b"\n")
    (message,) = messages(isolation(root))
    assert message == ("run c0ffee00: its error output repeats a line of chat live, message 1")


def test_a_prompt_argument_counts_as_given(root: str) -> None:
    argv = ["/usr/bin/bwrap", "--unshare-all", "--", "oracle", "--append-system-prompt", QUOTED]
    review(root, argv=argv)
    (message,) = messages(isolation(root))
    assert message.startswith("run c0ffee00: its order holds 12 words in a row of chat live")


def test_an_entry_of_the_chat_as_source_is_named(root: str) -> None:
    with Team(root) as team:
        seqs = asked_for(team).seqs
        (said,) = team.store.db.execute(
            "SELECT seq FROM lines WHERE channel = 'live' AND number = 0"
        ).fetchone()
    review(root, sources=[*seqs, said])
    (message,) = messages(isolation(root))
    assert message == (
        f"run c0ffee00 was given the text of entry {said} (chat.sent, chat live, message 0)"
    )


def test_a_source_that_is_no_message_is_named_by_what_it_is(root: str) -> None:
    with Team(root) as team:
        seqs, entries = asked_for(team).seqs, list(team.store.read())
    created = next(entry for entry in entries if entry.kind == "chat.created")
    event = next(entry for entry in entries if entry.data.get("type") == "task-complete")
    review(root, sources=[*seqs, created.seq, event.seq])
    front = "run c0ffee00 was given the text of entry"
    assert messages(isolation(root)) == [
        f"{front} {created.seq} (chat.created)",
        f"{front} {event.seq} (bus.published, {event.data['name']})",
    ]


def test_the_closure_follows_what_an_entry_came_from(root: str) -> None:
    """An event that she may see, and that follows from a message."""
    with Team(root) as team, team.act() as act:
        asked = asked_for(team)
        said = team.store.db.execute("SELECT max(seq) FROM lines").fetchone()[0]
        message = next(entry for entry in team.store.read() if entry.seq == said)
        body = team.source.body(asked.event) | {"name": "1-a-pythia-checkpoint-1.event"}
        draft = Draft("bus.published", "bus", body["source"], body, cause=message.id)
        seq = act.append([draft])[0].seq
    with Team(root) as team, team.act() as act:
        run_alone(act, asked, f"Review.\n{asked.log}", {"sources": [*asked.seqs, seq]})
    with collect(root) as evidence:
        told = outcome(run(evidence, select=["pythia-isolation"]), "pythia-isolation")
    assert messages(told) == [
        f"run c0ffee00 was given the text of entry {said} (chat.sent, chat live, message 7)"
    ]


def test_a_source_that_comes_later_is_named(root: str) -> None:
    review(root, sources=[4711])
    (message,) = messages(isolation(root))
    assert "entry 4711 (no entry that stands before it)" in message


# What it wrote -----------------------------------------------------------------------------------


def test_an_answer_that_quotes_the_chat_is_found(root: str) -> None:
    with Team(root) as team:
        text = answer(asked_for(team), f"As was said: {QUOTED}.")
    review(root, text=text)
    (finding,) = isolation(root).findings
    assert finding.message.startswith(
        "run c0ffee00: its output repeats 12 words in a row of chat live, message 7"
    )


def test_what_she_said_before_is_answer(root: str) -> None:
    """The same words in two assessments: the chat has them from her."""
    risk = "Whoever writes while another one reads finds a half of what was there, and says nothing"
    with Team(root) as team:
        text = answer(asked_for(team), risk)
    review(root, text=text)
    with Team(root) as team:
        chat_send.send(team, "live", "alex", f"She says: {risk}")
        for number in range(3):
            decide(team, f"More {number}", "It is cheap.")
        again = answer(asked_for(team), risk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorded_review, "RUN", "beef" * 8)
        review(root, text=again)
    told = isolation(root)
    assert (told.verdict, told.coverage["assessments"]) == ("clean", 2)


@pytest.mark.parametrize("theirs", [False, True])
def test_what_an_assessment_from_outside_said_is_no_echo(root: str, theirs: bool) -> None:
    """One program reviews, and its answer is taken in; then it runs under us."""
    risk = "Whoever writes while another one reads finds a half of what was there, and says nothing"
    with Team(root) as team:
        text = answer(asked_for(team), risk)
        if not theirs:
            chat_send.send(team, "live", "oracle", text)
    if theirs:
        original = Original(Path(root), Clock())
        original.clock.ns = time.time_ns()
        original.say("live", "oracle", text)
        original.publish("nbs-chat", "chat-message", "normal", f"oracle: {text}")
        with Team(root) as team:
            adoption.sync(team)
    review(root, text=text)
    with collect(root) as evidence:
        told = outcome(run(evidence), "pythia-isolation")
    assert (told.verdict, messages(told)) == ("cannot tell", [])
    assert told.reason.startswith("1 assessment came from outside")


SCRIPT = "Whoever writes while another one reads finds a half of what was there, and says nothing"


def outside_first(root: str, text: str, way: str) -> None:
    """An assessment that a script wrote elsewhere: it is recorded, said, or on another machine."""
    with Team(root) as team:
        if way == "recorded":
            with team.act() as act:
                posted(act, asked_for(team), text, spawn=None)
        elif way == "said":
            chat_send.send(team, "live", "oracle", text)
        else:
            original = Original(Path(root), Clock())
            original.clock.ns = time.time_ns()
            original.say("live", "oracle", text)
            original.publish("nbs-chat", "chat-message", "normal", f"oracle: {text}")
            adoption.sync(team)
    with Team(root) as team:
        for number in range(3):
            decide(team, f"More {number}", "It is cheap.")


@pytest.mark.parametrize("way", ["recorded", "said", "another machine"])
def test_a_script_that_wrote_an_assessment_from_outside_holds_no_chat(root: str, way: str) -> None:
    with Team(root) as team:
        outside_first(root, answer(asked_for(team), SCRIPT), way)
    review(root, text=answer_of(root), files=[f"print({SCRIPT!r})".encode()])
    with collect(root) as evidence:
        told = outcome(run(evidence), "pythia-isolation")
    assert (told.verdict, messages(told)) == ("cannot tell", [])
    assert told.reason.startswith("1 assessment came from outside")


def answer_of(root: str) -> str:
    with Team(root) as team:
        return answer(asked_for(team))


def test_an_assessment_in_a_chat_file_that_was_put_aside_is_no_chat(root: str) -> None:
    """As after a merge of two machines' files."""
    with Team(root) as team:
        outside_first(root, answer(asked_for(team), SCRIPT), "said")
    data = (Path(root) / "chat/live.chat").read_bytes()
    with Team(root) as team, team.act() as act:
        act.append([drafts.displaced("chat/live.chat", "a merge", data)])
    review(root, text=answer_of(root), files=[f"print({SCRIPT!r})".encode()])
    with collect(root) as evidence:
        told = outcome(run(evidence), "pythia-isolation")
    assert messages(told) == []


@pytest.mark.parametrize("where", ["message", "event"])
def test_what_was_also_said_otherwise_is_chat(root: str, where: str) -> None:
    """An assessment that repeats the chat takes nothing of it away."""
    with Team(root) as team:
        text = answer(asked_for(team), SCRIPT)
        if where == "message":
            chat_send.send(team, "live", "alex", f"As I said: {SCRIPT}")
        outside_first(root, text, "said")
        if where == "event":
            quoted = f"alex: {text} And this is new."
            with team.act() as act:
                act.append([draft_event_for_act(act, "nbs-chat", "chat-message", "normal", quoted)])
    review(root, text=answer_of(root), files=[f"print({SCRIPT!r})".encode()])
    with collect(root) as evidence:
        told = outcome(run(evidence, select=["pythia-isolation"]), "pythia-isolation")
    assert len(messages(told)) == 1


@pytest.mark.parametrize(("level", "verdict"), [("namespace", "warning"), ("folder", "failure")])
def test_a_reading_of_the_chat_in_her_stream_is_found(root: str, level: str, verdict: str) -> None:
    with Team(root) as team:
        text = answer(asked_for(team))
    call = {"type": "tool_use", "name": "Read", "input": {"file_path": "/srv/.nbs/chat/live.chat"}}
    lines = [
        {"type": "assistant", "message": {"content": [call]}},
        {"type": "result", "subtype": "success", "result": text},
    ]
    stdout = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    argv = ["oracle"] if level == "folder" else ["/usr/bin/bwrap", "--unshare-all", "oracle"]
    review(root, level=level, argv=argv, stdout=stdout)
    (finding,) = isolation(root).findings
    assert finding.severity == verdict
    assert finding.evidence == ("Read(/srv/.nbs/chat/live.chat)",)
    assert finding.message in (
        "run c0ffee00 read the chat", "run c0ffee00 tried to read the chat, and there was none"
    )  # fmt: skip


def test_a_command_in_her_error_output_is_found(root: str) -> None:
    review(root, level="folder", argv=["oracle"], stderr=b"> Bash(tail -50 .nbs/chat/live.chat)\n")
    assert messages(isolation(root)) == ["run c0ffee00 read the chat"]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_transcript_that_is_one_value_shows_what_its_lines_would(
    root: str, indent: int | None
) -> None:
    calls = [
        {"type": "tool_use", "name": "Read", "input": {"file_path": "/srv/.nbs/chat/live.chat"}},
        {"type": "tool_use", "name": "mcp__wiki__search", "input": {}},
    ]
    data = " " + json.dumps([{"type": "assistant", "content": calls}], indent=indent)
    review(root, transcript=data.encode())
    told = isolation(root)
    assert messages(told) == ["run c0ffee00 tried to read the chat, and there was none"]
    assert told.verdict == "cannot tell"
    assert "its stream shows tools of the server 'wiki'" in told.reason


def test_a_file_that_a_transcript_was_given_without_a_call_is_named(root: str) -> None:
    attachment = {"type": "file", "filename": "/srv/.nbs/chat/live.chat", "content": "ann: yes"}
    records = [{"type": "attachment", "attachment": attachment, "cwd": "/srv", "sessionId": "s"}]
    data = "".join(f"{json.dumps(one)}\n" for one in records).encode()
    review(root, level="folder", argv=["oracle"], transcript=data)
    (finding,) = isolation(root).findings
    assert finding.message == "run c0ffee00 read the chat"
    assert finding.evidence == ("mention(/srv/.nbs/chat/live.chat)",)


CALLS = [
    {"type": "tool_use", "name": "Bash", "input": {"command": "cd .nbs; cat chat/live.chat"}},
    {"type": "tool_use", "name": "Grep", "input": {"pattern": "a", "glob": "*.chat"}},
    {"type": "tool_use", "tool_name": "read_file", "parameters": {"path": ".nbs/chat/a.chat"}},
    {"type": "function_call", "name": "shell", "arguments": '{"command": ["cat", "x.chat"]}'},
    {"type": "command_execution", "command": "/bin/bash -lc 'cat .nbs/chat/live.chat'"},
    {"type": "tool_use", "name": "Task", "input": {"prompt": "Read .nbs/chat/live.chat."}},
    {"type": "tool_use", "name": "other", "input": {"do": "cat .nbs/chat/live.chat"}},
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_in_a_stream_is_judged_by_what_it_opens(root: str, call: dict[str, Any]) -> None:
    line = json.dumps({"type": "item.completed", "item": {"content": [call]}})
    review(root, level="folder", argv=["oracle"], stderr=f"{line}\n".encode())
    assert messages(isolation(root)) == ["run c0ffee00 read the chat"]


HARMLESS_CALLS = [
    {"type": "tool_use", "name": "Write", "input": {"content": "cat .nbs/chat/live.chat"}},
    {"type": "tool_use", "name": "Grep", "input": {"pattern": ".nbs/chat/", "path": "src"}},
    {"type": "tool_use", "name": "Bash", "input": {"command": "cat x >> .nbs/chat/live.chat"}},
    {"type": "tool_use", "name": "Task", "input": {"prompt": "Never read .nbs/chat/live.chat."}},
    {"type": "text", "text": "cat .nbs/chat/live.chat"},
]


@pytest.mark.parametrize("call", HARMLESS_CALLS)
def test_a_call_in_a_stream_that_opens_nothing_is_none(root: str, call: dict[str, Any]) -> None:
    line = json.dumps({"type": "assistant", "message": {"content": [call]}})
    review(root, level="folder", argv=["oracle"], stderr=f"{line}\n".encode())
    assert isolation(root).findings == ()


@pytest.mark.parametrize("line", ['{"retries": 3}', '[{"retries": 3}]', "[1]", "{}"])
def test_an_assessment_may_hold_a_line_of_json(root: str, line: str) -> None:
    with Team(root) as team:
        text = answer(asked_for(team), f"As in\n\n{line}\n\nit is tried again.")
    review(root, text=text)
    assert isolation(root).verdict == "clean"


def test_an_assessment_may_speak_of_a_reading(root: str) -> None:
    with Team(root) as team:
        text = answer(asked_for(team), "Somebody will run `cat .nbs/chat/live.chat` one day.")
    review(root, text=text)
    assert isolation(root).verdict == "clean"


def test_a_transcript_that_echoes_the_chat_is_found(root: str) -> None:
    line = json.dumps({"type": "user", "content": [{"type": "tool_result", "content": QUOTED}]})
    review(root, level="folder", argv=["oracle"], transcript=f"{line}\n".encode())
    told = isolation(root)
    assert told.coverage["transcripts"] == 1
    assert messages(told)[0].startswith("run c0ffee00: its transcript repeats 12 words in a row")


def test_an_assessment_that_its_run_did_not_write_is_named(root: str) -> None:
    with Team(root) as team:
        other = answer(asked_for(team), "Something else altogether.")
    review(root, stdout=other.encode())
    assert messages(isolation(root)) == ["the assessment is not what run c0ffee00 wrote"]


@pytest.mark.parametrize("stream", [False, True])
def test_an_assessment_that_commands_a_terminal_is_still_its_own(
    root: str, *, stream: bool
) -> None:
    with Team(root) as team:
        text = answer(asked_for(team), "It is \x1b[31mred\x1b[0m, \x1b]0;and titled\x07 so.")
    line = json.dumps({"type": "result", "result": text})
    review(root, text=text, stdout=(line if stream else text).encode())
    assert messages(isolation(root)) == []


def test_a_run_that_never_ended_wrote_nothing(root: str) -> None:
    review(root, ended=False)
    assert messages(isolation(root)) == [
        "run c0ffee00: it is started, and an assessment is said to be its own",
        "the assessment is not what run c0ffee00 wrote",
    ]


def test_an_assessment_of_a_run_that_never_was_is_named(root: str) -> None:
    with Team(root) as team, team.act() as act:
        asked = asked_for(team)
        posted(act, asked, answer(asked), RUN)
    assert messages(isolation(root)) == [
        "it is said that run c0ffee00 wrote this assessment: Pythia had none"
    ]


def test_an_assessment_of_a_run_about_another_event_is_named(root: str) -> None:
    review(root, subject="3")
    assert messages(isolation(root)) == [
        "run c0ffee00: it was about another checkpoint event than its assessment answers"
    ]


def test_a_namespace_that_is_claimed_when_all_is_over_is_named(root: str) -> None:
    review(root, level=None)
    with Team(root) as team, team.act() as act:
        act.append([drafts.pythia_isolated(RUN, "namespace", recorded_review.HIDDEN, None)])
    assert messages(isolation(root)) == [
        "run c0ffee00: how it was kept apart is said by an entry that came when it was over"
    ]


# What cannot be told -----------------------------------------------------------------------------


def altered(root: str, kind: str, **fields: Any) -> None:
    """Change what the newest entry of a kind says, all else made to fit."""
    rows = read(f"{root}/ledger.db")
    seq = max(n for n, row in enumerate(rows) if row.head["kind"] == kind)
    rows[seq] = rows[seq].saying(**fields)
    forge(root, rows)


def test_a_prompt_that_its_digest_does_not_fit(root: str) -> None:
    review(root)
    altered(root, "delivered", content={"text": "Review this."})
    told = isolation(root)
    assert told.verdict == "cannot tell"
    assert "is not what its digest says" in told.reason


def test_a_prompt_whose_bytes_are_gone(root: str) -> None:
    review(root)
    digest = "ab" * 32
    altered(root, "delivered", content={"sha256": digest, "size": 9}, sha256=digest)
    with collect(root) as evidence:
        told = outcome(run(evidence), "pythia-isolation")
    assert "its prompt (entry" in told.reason
    assert "is not there" in told.reason


def test_another_prompt_than_the_recorded_one(root: str) -> None:
    review(root)
    text = "Review nothing."
    digest = sha256(text.encode()).hexdigest()
    altered(root, "delivered", content={"text": text}, sha256=digest, sources=[])
    assert messages(isolation(root)) == [
        "run c0ffee00: its order gives it another prompt than the recorded one"
    ]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("delivered", "its prompt (entry"),
        ("agent.requested", "its order cannot be read"),
        ("agent.ended", "what it wrote (entry"),
    ],
)
def test_what_was_erased_cannot_be_told(root: str, kind: str, reason: str) -> None:
    review(root)
    with Team(root) as team:
        seq = max(entry.seq for entry in team.store.read() if entry.kind == kind)
        redaction.redact(team, redaction.RedactionRequest((seq,), None, "private", "alex"))
    told = isolation(root)
    assert told.verdict == "cannot tell"
    assert reason in told.reason


def test_an_output_that_was_too_long_to_keep(root: str) -> None:
    review(root, stdout=("ab" * 32, 20_000_000))
    assert "was not kept: 20000000 bytes" in isolation(root).reason


def test_tool_servers_give_what_nobody_recorded(root: str) -> None:
    review(root, order={"parameters": Parameters(mcp_servers={"wiki": McpServer(command="wiki")})})
    assert "it had tool servers, whose answers are nowhere" in isolation(root).reason


@pytest.mark.parametrize(("extra", "verdict"), [("", "clean"), ("\n" + "so " * 12, "cannot tell")])
def test_an_erased_message_matters_where_there_is_room_for_it(
    root: str, extra: str, verdict: str
) -> None:
    review(root, extra=extra)
    with Team(root) as team:
        (seq,) = team.store.db.execute(
            "SELECT max(seq) FROM lines WHERE channel = 'live' AND handle = 'alex'"
        ).fetchone()
        redaction.redact(team, redaction.RedactionRequest((seq,), None, "private", "alex"))
    told = isolation(root)
    assert told.verdict == verdict
    assert ("1 message was erased" in told.reason) is bool(extra)


@pytest.mark.parametrize(
    ("before", "words", "verdict"),
    [(False, 12, "cannot tell"), (False, 11, "clean"), (True, 12, "clean")],
)
def test_an_erased_message_may_stand_in_a_file_that_came_later(
    root: str, words: int, verdict: str, *, before: bool
) -> None:
    file = b"so " * words
    with Team(root) as team, team.act() as act:
        if before:  # it was the same when nobody had said that yet
            act.append([drafts.delivered(RUN, "file", file, ())])
        seq = chat_send.say_in(act, "live", "alex", "what nobody should have said").seq
    review(root, files=[file])
    with Team(root) as team:
        redaction.redact(team, redaction.RedactionRequest((seq,), None, "private", "alex"))
    told = isolation(root)
    assert told.verdict == verdict


# From outside ------------------------------------------------------------------------------------


def test_an_assessment_from_outside_is_named(root: str) -> None:
    with Team(root) as team, team.act() as act:
        asked = asked_for(team)
        posted(act, asked, answer(asked), spawn=None)
    told = isolation(root)
    assert (told.verdict, told.past) == ("cannot tell", False)
    assert told.reason.startswith("1 assessment came from outside (chat live, message 8)")
    assert told.coverage["from outside"] == 1


def test_one_from_outside_beside_one_of_ours(root: str) -> None:
    review(root)
    with Team(root) as team:
        chat_send.send(team, "live", "pythia", answer(asked_for(team)))
    with collect(root) as evidence:
        told = outcome(run(evidence), "pythia-isolation")
    assert told.verdict == "cannot tell"
    assert told.coverage["from outside"] == told.coverage["in a namespace"] == 1


def test_runs_without_an_assessment_leave_nothing_to_tell(root: str) -> None:
    review(root, text=None, stdout=b"no", level="folder", argv=["oracle"])
    with collect(root) as evidence:
        told = outcome(run(evidence), "pythia-isolation")
    assert told.verdict == "not applicable"
    assert told.reason.startswith("no assessment was posted; 1 review run")


def test_a_failed_run_that_read_the_chat_is_a_breach(root: str) -> None:
    review(root, text=None, stdout=QUOTED.encode(), level="folder", argv=["oracle"])
    with collect(root) as evidence:
        told = outcome(run(evidence), "pythia-isolation")
    assert "its output repeats 12 words" in messages(told)[0]


# What is damaged ---------------------------------------------------------------------------------

ANYTHING: tuple[Any, ...] = (
    None,
    0,
    -1,
    True,
    1.5,
    "",
    "x",
    [],
    ["x"],
    [None],
    {},
    {"text": 5},
    {"sha256": "x"},
)


@pytest.mark.drawn
@pytest.mark.parametrize(
    "kind",
    [
        "agent.requested", "delivered", "agent.ended", "pythia.isolated", "pythia.assessed",
        "chat.sent",
    ],
)  # fmt: skip
def test_a_body_of_any_shape_breaks_no_check(root: str, kind: str) -> None:
    """Each field gets every third value or more, and each value comes to a field."""
    review(root)
    with collect(root) as evidence:
        run(evidence, select=["drift"])
        assert evidence.folded is not None
        sound = evidence.source
        seq = max(n for (n,) in evidence.query(f"SELECT seq FROM ({SEQS[kind]})"))
        body = sound.body(seq)
        step = min(3, len(body))
        for number, name in enumerate(body):
            for value in ANYTHING[number % step :: step]:
                body = sound.body(seq) | {name: value}

                def given(asked: int, body: dict[str, Any] = body) -> dict[str, Any]:
                    return body if asked == seq else sound.body(asked)

                evidence.folded.source = sound._replace(body=given, bodies=lambda _: {})
                for check in (pythia_isolation, assessment_complete):
                    assert check.judge(evidence).verdict


SEQS = {
    "agent.requested": "SELECT seq FROM agents",
    "delivered": "SELECT seq FROM handed",
    "agent.ended": "SELECT ended AS seq FROM agents",
    "pythia.isolated": "SELECT seq FROM isolations",
    "pythia.assessed": "SELECT seq FROM assessments",
    "chat.sent": "SELECT message AS seq FROM assessments",
}
