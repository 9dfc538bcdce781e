"""Which files a command line opens, as people and agents write them."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.verify.sessions import programs, shell, syntax
from tripod.verify.sessions.programs import ShellReading
from tripod.verify.sessions.shell import Shell, opened_by, read_syntax
from tripod.verify.sessions.syntax import plain_commands

SURE = [
    ("cat chat/a.md", "/w/chat/a.md"),
    ("/bin/cat chat/a.md", "/w/chat/a.md"),
    ("c''at 'chat'/a.md", "/w/chat/a.md"),
    ("\\cat chat/a.md", "/w/chat/a.md"),
    ("cd chat && sed -n 1,5p a.md", "/w/chat/a.md"),
    ("cd src; cat ../chat/a.md", "/w/chat/a.md"),
    ("(cd chat; cat a.md); ls", "/w/chat/a.md"),
    ("git show HEAD:chat/a.md", "/w/chat/a.md"),
    ("git -C sub show HEAD~2:chat/a.md", "/w/sub/chat/a.md"),
    ("git diff HEAD -- chat/a.md", "/w/chat/a.md"),
    ("git blame chat/a.md", "/w/chat/a.md"),
    ("head -n 3 chat/a.md | grep x", "/w/chat/a.md"),
    ("grep foo chat/a.md", "/w/chat/a.md"),
    ("grep -e foo chat/a.md", "/w/chat/a.md"),
    ("awk '{print $1}' chat/a.md", "/w/chat/a.md"),
    ("jq . chat/a.md 2>/dev/null || true", "/w/chat/a.md"),
    ('X=$(cat chat/a.md); echo "$X"', "/w/chat/a.md"),
    ("echo `cat chat/a.md`", "/w/chat/a.md"),
    ('echo "$(< chat/a.md)"', "/w/chat/a.md"),
    ("while read l; do echo $l; done < chat/a.md", "/w/chat/a.md"),
    ("if [ -f x ]; then cat chat/a.md; fi", "/w/chat/a.md"),
    ("diff <(cat chat/a.md) b", "/w/chat/a.md"),
    ("cat <<EOF\n$(cat chat/a.md)\nEOF", "/w/chat/a.md"),
    ("bash -lc 'cat chat/a.md'", "/w/chat/a.md"),
    ("eval 'cat chat/a.md'", "/w/chat/a.md"),
    ("sudo -n timeout 5 cat chat/a.md", "/w/chat/a.md"),
    ("env A=b cat chat/a.md", "/w/chat/a.md"),
    ("base64 chat/a.md", "/w/chat/a.md"),
    ("xxd chat/a.md | head", "/w/chat/a.md"),
    ("cp chat/a.md x && cat x", "/w/chat/a.md"),
    ("tar cf - chat/a.md | base64", "/w/chat/a.md"),
    ("dd if=chat/a.md", "/w/chat/a.md"),
    (". chat/a.md", "/w/chat/a.md"),
    ("cat ~/.env", "~/.env"),
    ("nbs-chat read live.chat --last=20", "/w/.nbs/chat/live.chat"),
    ("nbs-chat search .nbs/chat/a.chat parser", "/w/.nbs/chat/a.chat"),
    ("tripod --read-only chat poll live ann", "/w/.nbs/chat/live.chat"),
    ("tripod show chat --at 5", "/w/.nbs/chat"),
    ("tripod scribe show D-1", "/w/.nbs/chat"),
    ("nbs-bus read .nbs/events 1-a-b-2.event", "/w/.nbs/events/1-a-b-2.event"),
    ("tripod bus read 1-a-b-2.event", "/w/.nbs/events/1-a-b-2.event"),
    ("tripod query 'select text from log'", "/w/.nbs/ledger.db"),
    ("git show refs/tripod/ann:bodies/0.jsonl", "/w/.git/refs/tripod/ann"),
    ("git checkout refs/tripod/ann -- bodies", "/w/.git/refs/tripod/ann"),
    ("cat 'chat/\u2192 \xfc_u00fc41_.md'", "/w/chat/\u2192 \xfc_u00fc41_.md"),
]


@pytest.mark.parametrize(("command", "path"), SURE, ids=[command for command, _ in SURE])
def test_a_file_that_is_named_is_opened_for_sure(command: str, path: str) -> None:
    assert (path, True) in [(one.path, one.sure) for one in opened_by(command, "/w").opened]


@pytest.mark.parametrize(
    "command",
    [
        "tripod chat send live ann 'cat chat/a.md'",
        "nbs-chat send .nbs/chat/live.chat ann hello",
        "nbs-bus check .nbs/events",
        "tripod scribe log 'Serve tea'",
        "git push origin refs/tripod/ann",
    ],
)
def test_a_command_of_ours_that_shows_nothing_opens_nothing(command: str) -> None:
    assert opened_by(command, "/w") == programs.ShellReading()


@pytest.mark.parametrize("command", ["tripod show 45", "tripod verify -v", "tripod"])
def test_another_command_of_ours_may_show_anything(command: str) -> None:
    assert opened_by(command, "/w").opaque


MAYBE = [
    ("cat chat/*", "/w/chat/*"),
    ("cat $F", "/**"),
    ("F=chat/a.md; cat $F", "/w/chat/a.md"),
    ('for f in chat/*.md; do cat "$f"; done', "/w/chat/*.md"),
    ("cat $HOME/.env", "/**/.env"),
    ("cat $(git ls-files)", "/**"),
    ("ls chat | xargs cat", "/**"),
    ("cd $D; cat a.md", "/**/a.md"),
    ("cd - && cat a.md", "/**/a.md"),
    ("git diff", "/w"),
    ("git log -p", "/w"),
    ("find . -name x -exec cat {} \\;", "/w"),
]


@pytest.mark.parametrize(("command", "path"), MAYBE, ids=[command for command, _ in MAYBE])
def test_what_only_the_shell_knew_may_be_opened(command: str, path: str) -> None:
    assert (path, False) in [(one.path, one.sure) for one in opened_by(command, "/w").opened]


@pytest.mark.parametrize(
    "command",
    [
        "python3 -c \"print(open('ch'+'at/a.md').read())\"",
        "cat <<EOF | python3\nprint(1)\nEOF",
        "npm test",
        "./run.sh",
        "bash run.sh",
        "$PROGRAM chat/a.md",
        "f() { cat x; }; f",
        "awk 'BEGIN { while ((getline l < \"chat/a.md\") > 0) print l }'",
        "sed -n '1r chat/a.md' x",
        "git my-alias",
        "cat 'unfinished",
        "busybox cat chat/a.md",
        'bash -c "$X"',
        "x" * (shell.MAX_COMMAND + 1),
        "$(" * 3000,
    ],
    ids=lambda command: command[:30],
)
def test_what_may_open_any_file_is_opaque(command: str) -> None:
    assert opened_by(command, "/w").opaque


@pytest.mark.parametrize(
    "command",
    [
        "ls -la chat",
        "echo chat/a.md",
        "find . -name '*.md'",
        "git status",
        "rm chat/a.md",
        "git log --oneline -5",
        "printf x >> chat/a.md",
        "cd chat; pwd",
    ],
)
def test_what_shows_no_text_opens_nothing(command: str) -> None:
    found = opened_by(command, "/w")
    assert (found.opened, found.opaque) == ([], [])


def test_a_search_below_a_folder_says_so() -> None:
    for command in ("grep -rn x .", "rg x", "git grep x", "grep -R x ."):
        (one,) = opened_by(command, "/w").opened
        assert (one.path, one.recursive, one.lists_names) == ("/w", True, True)
    (one,) = opened_by("grep -rhn x chat", "/w").opened
    assert (one.path, one.lists_names) == ("/w/chat", False)


def test_without_the_parser_only_a_plain_list_of_words_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shell, "_parser", lambda: None)
    assert [one.path for one in opened_by("cat 'chat/a.md'", "/w").opened] == ["/w/chat/a.md"]
    for command in ("cat a | head", "cat $F", "cat a; cat b", "cat 'a", "cat *", "bash -c 'cat a'"):
        assert opened_by(command, "/w").opaque, command


@given(st.text(max_size=200))
def test_no_command_line_raises(command: str) -> None:
    found = opened_by(command, "/w")
    assert all(one.path for one in found.opened)


@pytest.mark.parametrize("part", ["(;;'$", "))", "||", "<))", "$(", "if a; then "])
def test_a_hostile_line_is_given_up_soon(part: str) -> None:
    for length in (4_000, 200_000):
        assert opened_by(part * (length // len(part)), "/w").opaque


def test_a_long_text_that_a_command_writes_is_not_parsed() -> None:
    body = "$(cat y) 'it\n" * 9_000
    found = opened_by(f"cd chat && cat > x.md <<'EOF'\n{body}EOF\ncat a.md", "/w")
    assert ([one.path for one in found.opened], found.opaque) == (["/w/chat/a.md"], [])
    for hidden in (
        f"echo \"<<'EOF'\n$(cat chat/a.md)\nEOF\n\" {body}",
        f"cat <<'E'\n{body}\nE x\nE\ncat chat/a.md; {body}",
        f"cat <<'E'\nE\n{body}",
        f"# <<'E'\ncat chat/a.md {body}\nE",
    ):
        assert opened_by(hidden, "/w").opaque
    several = opened_by("cat <<'A' <<'B'\n1\nB\nA\n$(cat x)\nB\ncat chat/a.md", "/w")
    assert "/w/chat/a.md" in [one.path for one in several.opened]


BEHIND = [
    "cat 2>/dev/null .env",
    "a | cat 2>/dev/null .env",
    "cat <<EOF .env\nx\nEOF",
    "grep x 2>/dev/null .env $X",
    "rg x >&2 .env",
    "> x 2>&1 cat .env",
]


@pytest.mark.parametrize("command", BEHIND)
def test_a_word_behind_a_redirect_is_an_argument(command: str) -> None:
    assert "/w/.env" in [one.path for one in opened_by(command, "/w").opened]


def test_what_the_parser_leaves_out_before_a_redirect_is_opaque() -> None:
    found = opened_by("grep - 2>/dev/null .env $X", "/w")
    assert found.opaque or "/w/.env" in [one.path for one in found.opened]


WORDS = """
cat rg ls sed -n '1,5p' a/b.py "x_y" cd .. git show HEAD~1:x -C -p bash -c 'cat_x' env X=1 test -f
[ ] xargs '' 'a'b --include='*.py' 1 ~ ~/x : find . -exec ; %1 @ +x alias a=b 9 -- grep -rn -ex
-f x: source eval timeout 5 diff awk 'getline' sudo nohup command builtin exec tee unset read PATH
printf -v echo tail set trap let git -c user.name=a log --stat tag notes sort -k2 tar xzf date -uf
-I% % jq -e '.x' head if then time export select declare
"""
PARTS = [*WORDS.split(), "'a b'", "é", "_u000041_", "'", '"', "cat\t"]
BETWEEN = [
    " ",
    " ",
    " ",
    " ",
    " ",
    "",
    " | ",
    " || ",
    " && ",
    "; ",
    ";",
    "|",
    " 2>/dev/null ",
    " >&2 ",
]


@given(st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from(BETWEEN)), max_size=8))
def test_a_plain_line_is_read_without_the_parser_as_with_it(
    parts: list[tuple[str, str]],
) -> None:
    line = "".join(word + between for word, between in parts)
    parser = shell._parser()
    plain = plain_commands(line)
    if plain is None or parser is None:
        return
    parsed = ShellReading()
    read_syntax(parser, line, Shell(parsed, "/w"))
    if any("the parser left out" in why for why in parsed.opaque):
        return  # it drops a `-` before a redirect
    assert opened_by(line, "/w") == parsed


def test_a_quote_that_is_not_closed_is_no_plain_word() -> None:
    assert plain_commands("cat cat'") is None


def test_a_grammar_whose_library_lies_elsewhere_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(syntax, "PathFinder", SimpleNamespace(find_spec=lambda *_: None))
    assert syntax.parser_of("tree_sitter_bash") is not None
    assert syntax.parser_of("tree_sitter_no_such_grammar") is None


def test_what_is_not_plain_is_passed_over_at_once() -> None:
    """Found by torture: each of these took the square of its length, an hour and more."""
    assert plain_commands("9" * 1_000_000 + "*") is None
    assert syntax.without_braces("{" + "," * 1_000_000) == ["{" + "," * 1_000_000]
