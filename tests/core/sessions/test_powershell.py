"""Which files a command line of PowerShell opens, as people and agents write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tripod.verify.isolation.globs import NeverRule
from tripod.verify.isolation.phrases import ProtectedText
from tripod.verify.sessions import powershell
from tripod.verify.sessions.exposure import (
    SessionExposures,
    judge_exposures,
)
from tripod.verify.sessions.items import Call, Given
from tripod.verify.sessions.powershell import opened_by_powershell

SURE = [
    ("Get-Content chat/a.md", "/w/chat/a.md"),
    ("GET-CONTENT chat\\a.md", "/w/chat/a.md"),
    ("gc -Path 'chat\\a.md' | select -First 3", "/w/chat/a.md"),
    ("gc -Raw chat/a.md", "/w/chat/a.md"),
    ("gc -TotalCount 5 chat/a.md", "/w/chat/a.md"),
    ("gc -LiteralPath:chat/a.md", "/w/chat/a.md"),
    ("gc -lit chat/a.md", "/w/chat/a.md"),
    ("type chat\\a.md", "/w/chat/a.md"),
    ("gc 'x','chat/a.md'", "/w/chat/a.md"),
    ("gc -Path @('x', 'chat/a.md')", "/w/chat/a.md"),
    ("gc x,chat/a.md", "/w/chat/a.md"),
    ("Select-String foo chat/a.md", "/w/chat/a.md"),
    ("sls -Pattern foo -Path chat/a.md", "/w/chat/a.md"),
    ("sls -Path chat/a.md foo", "/w/chat/a.md"),
    ("sls -Pattern foo chat/a.md", "/w/chat/a.md"),
    ("sls -Debug foo chat/a.md -CaseSensitive", "/w/chat/a.md"),
    ("Import-Csv chat/a.md", "/w/chat/a.md"),
    ("Copy-Item chat/a.md x; gc x", "/w/chat/a.md"),
    ("[IO.File]::ReadAllText('chat/a.md')", "/w/chat/a.md"),
    ('[System.IO.File]::ReadAllLines("chat/a.md")', "/w/chat/a.md"),
    ("cd chat; gc a.md", "/w/chat/a.md"),
    ("Set-Location chat\ngc a.md", "/w/chat/a.md"),
    ("Push-Location -Path chat; gc a.md; Pop-Location", "/w/chat/a.md"),
    ("if (Test-Path x) { gc chat/a.md }", "/w/chat/a.md"),
    ("foreach ($f in 1..3) { gc chat/a.md }", "/w/chat/a.md"),
    ("1..3 | % { gc chat/a.md }", "/w/chat/a.md"),
    ("& { gc chat/a.md }", "/w/chat/a.md"),
    ("& 'gc' chat/a.md", "/w/chat/a.md"),
    ("$x = gc chat/a.md; Write-Output $x", "/w/chat/a.md"),
    ('"it says $(gc chat/a.md)"', "/w/chat/a.md"),
    ("(gc chat/a.md).Trim()", "/w/chat/a.md"),
    ("Compare-Object (gc chat/a.md) (gc b)", "/w/chat/a.md"),
    ("@{a = gc chat/a.md} | ConvertTo-Json", "/w/chat/a.md"),
    ("switch -File chat/a.md { a { 1 } }", "/w/chat/a.md"),
    ('powershell -NoProfile -Command "gc chat/a.md"', "/w/chat/a.md"),
    ("pwsh -c gc chat/a.md", "/w/chat/a.md"),
    ("cmd /c type chat\\a.md", "/w/chat/a.md"),
    ("git show HEAD:chat/a.md", "/w/chat/a.md"),
    ("grep foo chat\\a.md", "/w/chat/a.md"),
    ('gc "$HOME\\.env"', "~/.env"),
    ("gc chat/a.md && gc b || gc c", "/w/chat/a.md"),
    ("try { gc chat/a.md } catch [IO.IOException] { 1 } finally { 2 }", "/w/chat/a.md"),
]


@pytest.mark.parametrize(("command", "path"), SURE, ids=[command for command, _ in SURE])
def test_a_file_that_is_named_is_opened_for_sure(command: str, path: str) -> None:
    found = [(one.path, one.sure) for one in opened_by_powershell(command, "/w").opened]
    assert (path, True) in found


def _is_clean(command: str, never: str = "chat/**", cwd: str = "/w") -> bool:
    one = SessionExposures(NeverRule([never]), ProtectedText())
    one.add(Call("c", "powershell", {}, 1, "shell", command=command, cwd=cwd))
    one.add(Given("shell", 2, 0, "1", call="c"))
    one.end()
    return judge_exposures([one], {}).told == "clean"  # type: ignore[arg-type]  # a Counter


UNTOLD = """
gc chat/*
gc ch?t/a.md
gc $f
gc "$f"
gc ch"at"/a.md
gc chat`/a.md
gc -TotalCount chat/a.md
gc @args
gc (Join-Path chat a.md)
gc ("ch" + "at/a.md")
gc chat/$x
gc x, chat/a.md
gc chat/a.md,'b'
gc $PWD/chat/a.md
g`c chat/a.md
$p = 'chat/a.md'; gc $p
gci chat | gc
gci -r | sls foo
gci -Recurse -Filter *.md | ? Name -like a* | Select-String foo
gci | % { gc $_ }
gci chat | % { gc $_.FullName }
gci chat | % FullName | gc
ls -r | cat
'chat/a.md' | gc
$x | sls foo
git ls-files | gc
gi chat/a.md | % OpenText
gi chat/a.md | % { $_.OpenText().ReadToEnd() }
(gi chat/a.md).OpenText()
[IO.File]::OpenText('chat/a.md').ReadToEnd()
[IO.File]::Foo('chat/a.md')
[IO.StreamReader]::new('chat/a.md')
[IO.StreamReader]'chat/a.md'
New-Object IO.StreamReader 'chat/a.md'
iex 'gc chat/a.md'
Invoke-Expression $x
[scriptblock]::Create('gc chat/a.md')
& $x chat/a.md
& .\\x.ps1
. .\\x.ps1
.\\x.ps1
x.exe
python x.py
'import os' | python -
@'
import os
'@ | python -
npm test
cmd /c "type chat\\a.md"
cmd /c type chat\\*
cmd /c type %X%
cmd /c findstr /s foo *
cmd /c x.bat
cmd
powershell -EncodedCommand ZwBjAA==
powershell -e ZwBjAA==
pwsh x.ps1
pwsh -File x.ps1
pwsh -Command $x
bash x.sh
Start-Process notepad chat/a.md
Invoke-Command { gc x }
Start-Job { gc x }
Invoke-WebRequest file:///w/chat/a.md
curl x
Set-Alias ls gc; ls chat/a.md
function ls { gc @args }; ls chat/a.md
sc function:ls { gc chat/a.md }
${function:ls} = { gc x }
${C:chat/a.md}
$PSDefaultParameterValues = @{'gc:Path' = 'chat/a.md'}; gc
$env:PATH = '/w/bin'; ls
$env:GIT_PAGER = 'cat chat/a.md'; git -p status
git $x
git commit @x
Move-Item chat/a.md b; gc b
New-Item x -ItemType SymbolicLink -Target chat
New-PSDrive X FileSystem chat; gc X:\\a.md
gc FileSystem::/w/chat/a.md
gc C:a.md
gc /w/chat/a.md:x
cd $x; gc a.md
cd chat; cd nowhere; gc a.md
Push-Location chat; cd /tmp; Pop-Location; gc a.md
pushd chat; popd; gc a.md
class C { C() { gc x } }
gc < chat/a.md
gc --% chat/a.md
gc chat\u2044a.md \u201cchat/a.md\u201d
gc \u2013Path chat/a.md
gc 'unfinished
find foo chat/a.md
sort chat/a.md
more chat/a.md
fc x chat/a.md
sls foo -Path chat/*
sls -AllMatches -Foo a chat/a.md
Get-FileHash chat/a.md
Format-Hex chat/a.md
sudo cat chat/a.md
Content chat/a.md
$x.Foo()
$x.$y()
[x]::Foo()
$ExecutionContext.InvokeCommand.InvokeScript('gc chat/a.md')
$x = [ref]1
data { gc x }
"""


@pytest.mark.parametrize("command", UNTOLD.replace("\n'@", "\\n'@").replace("\nimport", "\\nimport")
                         .strip().splitlines())  # fmt: skip
def test_what_may_show_a_file_is_never_clean(command: str) -> None:
    assert not _is_clean(command.replace("\\n", "\n"))


@pytest.mark.parametrize(
    ("never", "command"),
    [
        ("chat/**", "gc chat\\a.md"),
        ("C:/w/chat/**", "gc \\w\\chat\\a.md"),
        ("C:/w/chat/**", "gc \\\\localhost\\c$\\w\\chat\\a.md"),
        ("C:/w/chat/**", "gc \\\\?\\C:\\w\\chat\\a.md"),
        (".env", "gc .env."),
        (".env", "gc '.env::$DATA'"),
        ("secret-file.txt", "gc SECRET~1.TXT"),
        ("chat/**", "gc CHAT\\a.md"),
        ("chat/**", "type %X%"),
        ("C:/w/chat/**", "git worktree add ..\\x"),
        ("C:/w/chat/**", "git clone . ..\\x"),
        ("chat/**", "Copy-Item -Recurse chat ..\\x"),
        (".env", "cmd /c mklink x .env"),
        (".env", "certutil -encode .env x"),
    ],
)
def test_windows_has_several_names_for_a_file(never: str, command: str) -> None:
    one = SessionExposures(NeverRule([never]), ProtectedText())
    one.add(Call("c", "run_shell_command", {}, 1, "shell", command=command, cwd="C:\\w"))
    one.add(Given("shell", 2, 0, "1", call="c"))
    one.end()
    assert one.found or one.gaps


@pytest.mark.parametrize(
    "command",
    [
        "Get-ChildItem -Recurse chat",
        "ls chat | select Name,Length | ft",
        "Test-Path chat/a.md",
        "Remove-Item chat/a.md -Force",
        "'x' | Out-File chat/a.md",
        "Set-Content chat/a.md 'x'",
        "echo x > chat/a.md",
        "cmd /c dir chat",
        "git status; git log --oneline -5",
        "$x = 1; while ($x -lt 3) { $x++ }; Write-Host $x",
        "gc src/a.md | sls 'fo+' | select -First 3",
        "gc src/a.md -Tail 5 -Encoding utf8",
        "gci src -r -Filter *.md | sls -Pattern 'foo bar'",
        "gci src | % { gc $_.FullName }",
        "cd src; gc a.md; cd ..",
        "$env:FOO = '1'; (Get-Date).ToString('u')",
        "[math]::Max(1, 2); [Convert]::ToBase64String([Text.Encoding]::UTF8.GetBytes('a'))",
        "function f($a) { Write-Output $a }",
        "New-Item -ItemType Directory chat",
        "gc \u00fcber/a.md 2>$null",
        "Get-Process | Sort-Object CPU -Descending | Where-Object { $_.CPU -gt 3 }",
        "gc a.json | ConvertFrom-Json | % { $_.name.ToUpper() }",
        "python --version; node -v; docker ps; git log --oneline | sls x",
    ],
)
def test_what_shows_none_of_these_files_is_clean(command: str) -> None:
    assert _is_clean(command), opened_by_powershell(command, "/w")


def test_a_search_below_a_folder_says_so() -> None:
    (one,) = opened_by_powershell("gci src -r | sls x", "/w").opened
    assert (one.path, one.recursive, one.lists_names) == ("/w/src", True, True)


def test_without_the_parser_only_a_plain_list_of_words_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(powershell, "_parser", lambda: None)
    found = opened_by_powershell("gc chat\\a.md", "/w")
    assert [one.path for one in found.opened] == ["/w/chat/a.md"]
    for command in ("gc a | sls b", "gc $f", "gc a; gc b", "gc 'a'", "gc *", "pwsh -c gc a", ""):
        assert opened_by_powershell(command, "/w").opaque, command


@given(st.text(max_size=200))
def test_no_command_line_raises(command: str) -> None:
    found = opened_by_powershell(command, "/w")
    assert all(one.path for one in found.opened)


@pytest.mark.parametrize("part", ["||!", "--=", "<~++", "?<#,\t", "$(", "{", "${", '"$('])
def test_a_hostile_line_is_given_up_soon(part: str) -> None:
    for length in (4_000, 200_000):
        assert opened_by_powershell(part * (length // len(part)), "/w").opaque
