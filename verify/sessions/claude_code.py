"""Claude Code: one JSON object a line, a file for each session and each of its subagents. Pure.

Versions 2.0.50 to 2.1.3xx. Judged is what stands in ``message.content``, attachments and request
blobs: ``toolUseResult`` is the program's own object and may hold more, or less, than the model got.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import orjson

from tripod.verify.isolation.refusals import is_refusal
from tripod.verify.sessions.items import (
    MAIN,
    Call,
    Channel,
    Gap,
    Given,
    Item,
    Reader,
    Session,
    SessionRecord,
    ToolUse,
    fields,
    strange_text,
    strings_of,
    text_at,
    text_of,
    text_of_parts,
    ways_in,
)

TOOLS = {
    "Read": ToolUse("read", ("file_path",)),
    "NotebookRead": ToolUse("read", ("notebook_path",)),
    "Grep": ToolUse("search", ("path",), recursive=True, default="."),
    "Glob": ToolUse("names", ("path", "pattern")),
    "LS": ToolUse("names", ("path",)),
    "LSP": ToolUse("search", ("filePath", "file_path", "path"), recursive=True, default="."),
    "Bash": ToolUse("shell", command="command"),
    "PowerShell": ToolUse("shell", command="command"),
    "Monitor": ToolUse("shell", command="command"),
    "BashOutput": ToolUse("background"),
    "TaskOutput": ToolUse("background"),
    "KillShell": ToolUse("edit"),
    "TaskStop": ToolUse("edit"),
    "Edit": ToolUse("edit", ("file_path",)),
    "MultiEdit": ToolUse("edit", ("file_path",)),
    "Write": ToolUse("edit", ("file_path",)),
    "NotebookEdit": ToolUse("edit", ("notebook_path",)),
    "Task": ToolUse("subagent"),
    "Agent": ToolUse("subagent"),
    "SendMessage": ToolUse("subagent"),
    "TeammateTool": ToolUse("subagent"),
    "Skill": ToolUse("skill"),
    "SlashCommand": ToolUse("skill"),
    "ReadMcpResourceTool": ToolUse("resource", ("uri",)),
    "ListMcpResourcesTool": ToolUse("names"),
    "WebFetch": ToolUse("web"),
    "WebSearch": ToolUse("web"),
    "web_search": ToolUse("web"),
    "TodoWrite": ToolUse("edit"),
    "ToolSearch": ToolUse("edit"),
    "ExitPlanMode": ToolUse("edit"),
    "EnterPlanMode": ToolUse("edit"),
    "AskUserQuestion": ToolUse("paste"),
}
"""What each tool does. Tools that show no file and run nothing count as ``edit``."""

_ENVELOPE = """
    type uuid parentUuid logicalParentUuid sessionId session_id timestamp cwd version gitBranch
    userType isSidechain agentId entrypoint slug promptId teamName agentName forkedFrom
"""
_FIELDS = {
    "user": fields(
        _ENVELOPE
        + """message toolUseResult sourceToolAssistantUUID sourceToolUseID isMeta isCompactSummary
        isVisibleInTranscriptOnly permissionMode promptSource origin thinkingMetadata todos
        imagePasteIds turnOrigin turnPosition classifierMetaLines permissionDecision
        toolDenialKind sandboxed mcpMeta planContent interruptedMessageId"""
    ),
    "assistant": fields(
        _ENVELOPE
        + """message requestId requestRef requestedModel apiBlockIndex toolInputStreamMs effort
        perTurnEffort madeBy promptCacheRequested attributionSkill attributionAgent
        attributionPlugin isApiErrorMessage error apiErrorStatus apiError isMeta"""
    ),
    "attachment": fields(
        _ENVELOPE
        + "attachment rendered renderedRole renderedBesideToolResult renderedInHumanTurn isMeta"
    ),
    "progress": fields(_ENVELOPE + "data toolUseID parentToolUseID"),
    "queue-operation": fields(_ENVELOPE + "operation content reason commandUuid deliveryId"),
    "api-request-blob": fields(_ENVELOPE + "hash message"),
    "api-request-shape": fields(_ENVELOPE + "shapeHash shape"),
}
_MESSAGE = fields(
    "id type role model content stop_reason stop_sequence stop_details usage diagnostics container"
    " context_management"
)
_BLOCKS = {
    "text": fields("type text citations cache_control"),
    "tool_use": fields("type id name input caller cache_control"),
    "server_tool_use": fields("type id name input caller"),
    "tool_result": fields("type tool_use_id content is_error cache_control"),
    "thinking": fields("type thinking signature"),
    "redacted_thinking": fields("type data"),
    "fallback": fields("type"),
}
_SILENT = fields(
    """summary ai-title custom-title tag agent-name agent-color agent-setting pr-link frame-link
    worktree-state bridge-session atis-latch cost-state tools-used mode
    permission-mode last-prompt file-history-snapshot file-history-delta api-request"""
)
"""Records that no model gets: titles, settings, snapshots, sums, lists of digests."""

_SYSTEM = fields(
    """compact_boundary microcompact_boundary stop_hook_summary turn_duration local_command
    api_error model_refusal_fallback informational init away_summary bridge_status memory_saved"""
)
_SYSTEM_FIELDS = fields(
    _ENVELOPE
    + """subtype content level isMeta toolUseID hookCount hookInfos hookErrors hasOutput stopReason
    failedHookErrorIndexes hookAdditionalContext preventedContinuation durationMs messageCount
    compactMetadata microcompactMetadata error cause retryInMs retryAttempt maxRetries url
    writtenPaths verb"""
)
_PROGRESS = fields(
    """agent_progress bash_progress hook_progress mcp_progress query_update
    search_results_received waiting_for_task powershell_progress skill_progress"""
)
_OF_AGENTS = fields("agent_progress skill_progress")
_OF_HOOKS = " hookName hookEvent toolUseID"
_HOOK_RAN = "stdout stderr exitCode command durationMs" + _OF_HOOKS
_ATTACHED: dict[str, tuple[Channel, str]] = {
    "file": ("mention", "filename content displayPath savedCopyFraming truncated"),
    "directory": ("names", "path content displayPath"),
    "compact_file_reference": ("names", "filename displayPath"),
    "already_read_file": ("mention", "filename content displayPath truncated"),
    "pdf_reference": ("mention", "filename pageCount fileSize displayPath"),
    "edited_text_file": ("notice", "filename snippet displayPath"),
    "nested_memory": ("instructions", "path content displayPath"),
    "instructions": ("instructions", "files"),
    "selected_lines_in_ide": (
        "attachment",
        """filename content ideName lineStart lineEnd displayPath""",
    ),
    "opened_file_in_ide": ("names", "filename displayPath"),
    "mcp_resource": ("resource", "server uri name description content"),
    "hook_additional_context": ("hook", "content" + _OF_HOOKS),
    "hook_success": ("hook", "content " + _HOOK_RAN),
    "hook_system_message": ("hook", "content" + _OF_HOOKS),
    "hook_blocking_error": ("hook", "blockingError " + _HOOK_RAN),
    "hook_non_blocking_error": ("hook", _HOOK_RAN),
    "hook_cancelled": ("hook", "command durationMs timedOut timeoutMs" + _OF_HOOKS),
    "queued_command": (
        "background",
        """prompt source_uuid delivery_id commandMode origin runId timestamp toolsUsedDelta usage
        imagePasteIds""",
    ),
    "skill_listing": ("system", "content skillCount isInitial names digests"),
    "invoked_skills": ("skill", "skills"),
    "session_context": ("system", "context"),
    "prompt_snapshot": (
        "system",
        """cliPrefix reminderFold systemTurns toolChangeHeader inlineTools keptReminders
        echoWireToolInputs contextRendering system tools""",
    ),
    "task_reminder": ("system", "content itemCount"),
    "todo_reminder": ("system", "content itemCount"),
    "silent_turn_reminder": ("system", "text"),
    "environment": ("system", "snapshot changes"),
    "model": ("system", "identity text"),
    "date": ("system", "date"),
    "auto_mode": ("system", "autoModeConsentFlow"),
    "plan_mode": ("system", "reminderType isSubAgent planFilePath planExists"),
    "command_permissions": ("system", "allowedTools model"),
    "deferred_tools_record": ("system", "entries"),
    "deferred_tools_delta": (
        "system",
        """addedNames addedLines removedNames readdedNames wireHiddenNames pendingMcpServers
        needsAuthMcpServers failedMcpServers""",
    ),
    "agent_listing_delta": (
        "system",
        """addedTypes addedLines removedTypes isInitial showConcurrencyNote builtInTypes
        builtInPluginTypes""",
    ),
    "mcp_instructions_delta": ("system", "addedNames addedBlocks removedNames"),
    "remote_session_change": ("system", "url commit pr sendUserFileHint managedCommit managedPr"),
}
"""Attachments: the channel by which their text comes, and the fields beside ``type``."""

OF_THE_PROGRAM = frozenset(kind for kind, (way, _) in _ATTACHED.items() if way == "system")
"""Attachments that the program writes in every session, of no file."""

_TOLD_OF_CALLS = fields("hook_additional_context hook_success hook_system_message")
"""What a hook says of a call beside the answer; what it says of one that it denies is that."""

_ATTACHMENTS = {kind: (way, fields(f"type {names}")) for kind, (way, names) in _ATTACHED.items()}

_SKILL = re.compile("Base directory for this skill: (.+)")
_CAVEATS = ("Caveat: The messages below were generated", "<local-command-caveat>")
_CONTINUED = "This session is being continued from a previous conversation"
_LOCAL = ("<bash-", "<local-command-", "<command-")
_OUTPUT = re.compile(r"<(?:bash|local-command)-std(?:out|err)>(?!\s*</)")
"""What a command has printed that the user ran; where it printed nothing there is no text."""

_INSERTED = re.compile(
    r"""<ide_selection>\s*The\ user\ selected\ [^\n]{0,80}?\ from\ (?P<attachment>[^\n]+?):?\s*\n
    |^[ \t]*+Called\ the\ (?:Read|NotebookRead)\ tool\ with\ the\ following\ input:
      \ (?P<mention>\{[^\n]*\})
    |(?:^|>)[ \t]*+Note:\ (?P<notice>[^\s>][^\n>]*?)\ was\ (?:modified|changed|edited|updated)\b
    |(?:^|>)[ \t]*+Contents\ of\ (?P<instructions>[^\n>]+?)(?:\ \([^\n()]*\))?:[ \t]*$
    """,
    re.MULTILINE | re.VERBOSE,
)
"""How the program begins the text of a file within another text, by the channel that it has."""

_BEGUN = re.compile(r"\b(?:ID|[Ii]d|task)\b[:\"]*[ \"]([\w-]+)|\bagentId: ?([\w-]+)")
_TASK_FILE = re.compile(r"/tasks/([\w-]+)\.output\b")
_TASK_FIELDS = ("task_id", "bash_id", "shell_id", "agentId")
_BEGINS = frozenset(("shell", "subagent"))
_BEGINNINGS = ("Command ", "Async agent ", "Monitor ")
_HEAD = 1_000  # characters of an answer that say which task began
_SPAWNS = fields("Task Agent")
_WAKES = fields("SendMessage TeammateTool")
_WOKEN = ("to", "recipient", "target_agent_id", "target", "resume")
"""Tools that send a message to an agent, which works on by it, and the fields that name it."""

_PARENTS = fields("main team-lead")
_NO_TEXT = frozenset(("directory", "compact_file_reference", "opened_file_in_ide"))
_NAMES_OF_FILES = ("filename", "path", "uri", "filePath")
_NO_CONTENT = fields(
    "type filename path uri filePath displayPath savedCopyFraming globs ideName server name"
)
_ENCODED_TYPES = ("image", "document", "pdf", "audio")
_ENCODED = fields("base64 blob")
_UNDERSTOOD = frozenset({*_FIELDS, *_SILENT, "system", "content-replacement"})


class ClaudeCode(Reader):
    """Reads the file of a session, or of one of its subagents."""

    program = "claude-code"
    tools = TOOLS
    since, until = (2, 0, 50), (2, 1, 400)
    ways = ways_in(
        recorded="""read search names shell edit mcp resource subagent web tool paste summary
            background queue skill request system""",
        later={(2, 1, 97): "mention instructions attachment notice hook"},
        within={"instructions": "home"},
        no_way_in="script",
    )

    def __init__(self) -> None:
        super().__init__()
        self._begun: set[str] = set()  # ids of commands and agents in the background
        # Calls that start a subagent of its own file, or wake one, with the name that they give it.
        self._spawned: dict[str, str] = {}
        self._woken: dict[str, str] = {}
        self._names: dict[str, str] = {}  # the ids of agents by their names
        self._children: dict[str, str] = {}  # and by the calls, where progress tells
        self._nested: Counter[str] = Counter()  # calls of an agent that stand in this file
        self._own: str | None = None  # the agent whose file it is
        self._now: Session | None = None

    def read(self, record: SessionRecord) -> Iterable[Item]:
        """What one record holds."""
        value = record.value
        kind = value.get("type")
        if not isinstance(kind, str):
            kind = ""
        self.records[kind] += 1
        self.links(record)
        cwd = value.get("cwd")
        if isinstance(cwd, str):
            self.cwd = cwd
        odd: list[Item] = []
        now = self._now
        if now is None or value.get("sessionId") != now.id or value.get("version") != now.version:
            odd += self._session(record)
        elif not now.role and isinstance(value.get("attributionAgent"), str):
            self._now = now._replace(role=value["attributionAgent"], line=record.line)
            odd += (self._now,)  # the first records of a subagent do not say what sort it is of
        if kind not in _UNDERSTOOD:
            return chain(odd, self.strange_type(record, kind, value))
        known = _FIELDS.get(kind)
        if known is not None and not known.issuperset(value):
            odd += self.strange_fields(record, value, known, "a record", kind)
        agent = value.get("agentId")
        if not isinstance(agent, str):
            agent = MAIN
        if kind in ("user", "assistant"):
            if self._own is None:
                self._own = agent
            found = self._message(record, value, agent, nested=agent != self._own)
        elif kind == "attachment":
            if self._own is None:
                self._own = agent
            found = self._attachment(record, value, agent)
        elif kind in _SILENT:
            return odd
        else:
            found = self._other(record, kind, agent)
        return chain(odd, found) if odd else found

    def _other(self, record: SessionRecord, kind: str, agent: str) -> Iterator[Item]:
        """What a record holds that is neither a message nor an attachment."""
        value = record.value
        if kind == "progress":
            yield from self._progress(record, value)
        elif kind == "system":
            yield from self._system(record, value)
        elif kind == "queue-operation":
            text = text_of(value.get("content"))
            if text and value.get("operation") != "remove":
                yield self.given(record, "queue", text, sure=False)
        elif kind == "content-replacement":
            yield self.given(record, "request", value, sure=False)
        elif kind.startswith("api-request-"):
            part = value.get("message" if kind == "api-request-blob" else "shape")
            if part is None:
                yield Gap("missing", record.line, f"what the {kind} holds", "request")
            yield self.given(record, "request", part, agent=agent)

    def _session(self, record: SessionRecord) -> Iterator[Item]:
        value = record.value
        name, version = value.get("sessionId"), value.get("version")
        if not isinstance(name, str):
            return
        old = self.sessions.get(name)
        if old is not None and (version is None or version == old.version):
            return
        version = version if isinstance(version, str) else ""
        if old is not None and old.version and not version:
            return
        agent = value.get("agentId")
        role = text_at(value, "attributionAgent")
        parent = name if isinstance(agent, str) else None
        yield from self.began(record, name, version, parent=parent, role=role)
        self._now = self.sessions.get(name)

    def _message(
        self, record: SessionRecord, value: dict[str, Any], agent: str, *, nested: bool = False
    ) -> Iterable[Item]:
        """The blocks of a message: calls of the model, and what it was given."""
        message = value.get("message")
        if not isinstance(message, dict):
            return self._odd_message(record, message, "a message of another shape")
        odd: list[Item] = []
        if not _MESSAGE.issuperset(message):
            odd += self.strange_fields(record, message, _MESSAGE, "a message")
        content = message.get("content")
        kind = value.get("type")
        from_model = kind == "assistant"
        if message.get("role", kind) != kind:
            odd += (Gap("unknown", record.line, f"a message of {kind} in the role of another"),)
            from_model = False
        if isinstance(content, str):
            found: Iterable[Item] = ()
            if not from_model:
                found = self._words(record, value, content, agent=agent, nested=nested)
        elif not isinstance(content, list):
            what = "a message whose content is neither text nor list"
            found = self._odd_message(record, content, what)
        elif len(content) == 1:
            found = self._block(
                record, value, agent, content[0], from_model=from_model, nested=nested
            )
        else:
            block = partial(self._block, record, value, agent, from_model=from_model, nested=nested)
            found = chain.from_iterable(map(block, content))
        return chain(odd, found) if odd else found

    def _odd_message(self, record: SessionRecord, value: object, what: str) -> Iterator[Item]:
        yield Gap("unknown", record.line, what)
        yield from strange_text(record, value)

    def _block(
        self,
        record: SessionRecord,
        value: dict[str, Any],
        agent: str,
        block: object,
        *,
        from_model: bool,
        nested: bool,
    ) -> Iterable[Item]:
        """One block of a message."""
        kind = block.get("type") if isinstance(block, dict) else None
        known = _BLOCKS.get(kind) if isinstance(kind, str) else None
        if not isinstance(block, dict) or known is None:
            if kind in ("image", "document"):
                return (Gap("opaque", record.line, f"{kind} in a message", "attachment"),)
            name = f"{text_at(value, 'type')}.{text_at(block, 'type')}"
            return self.strange_type(record, name, block)
        odd: list[Item] = []
        found: Iterable[Item] = ()
        if not known.issuperset(block):
            odd += self.strange_fields(record, block, known, "a block", kind)
        if kind in ("tool_use", "server_tool_use"):
            call = self._call(record, block, agent, nested=nested)
            named = call.command or (call.paths[0] if call.paths else "")
            is_late = call.channel == "background" or "/tasks/" in named
            found = chain((call,), self._others(call)) if is_late else (call,)
        elif kind == "tool_result":
            found = self._result(record, value, block, agent, nested=nested)
        elif kind == "text" and not from_model:
            if not isinstance(block.get("text"), str):
                odd += (Gap("unknown", record.line, "a text of another type"),)
            text = text_of([block.get("text"), block.get("citations")])
            found = self._words(record, value, text, agent=agent, nested=nested)
        return chain(odd, found) if odd else found

    def _words(
        self, record: SessionRecord, value: dict[str, Any], text: str, **more: Any
    ) -> Iterator[Given]:
        """A text of a message that is not the model's: a person's words, or the program's."""
        channel: Channel = "paste"
        skill = None
        start = text.lstrip()
        if value.get("isCompactSummary") or start.startswith(_CONTINUED):
            channel = "summary"
        elif start.startswith(_LOCAL) and _OUTPUT.search(start):
            channel = "attachment"
        elif start.startswith(_CAVEATS):
            channel = "system"
        elif start.startswith("<task-notification>"):
            channel = "background"
        elif value.get("isMeta"):
            channel = "skill"
            skill = _SKILL.match(text)
        named = None if skill is None else f"{skill[1].strip()}/SKILL.md"
        yield self.given(record, channel, text, named=named, **more)
        yield from self._inserted(record, text, sure=value.get("isMeta") is True, **more)

    def _inserted(self, record: SessionRecord, text: str, **more: Any) -> Iterator[Given]:
        """Files that the program names within a text; a person may have written it like that."""
        if not ("<ide_sel" in text or "<system-rem" in text or "Contents of " in text):
            return
        for begins in _INSERTED.finditer(text):
            channel: Any = begins.lastgroup
            named = begins[channel].strip()
            if channel == "mention":
                try:
                    asked = orjson.loads(named)
                except orjson.JSONDecodeError:
                    continue
                named = text_at(asked, "file_path") or text_at(asked, "notebook_path")
            yield self.given(record, channel, begins[0], named=named, **more)

    def _others(self, call: Call) -> Iterator[Gap]:
        """The output of a command, or an agent, that this session did not begin."""
        of_task = call.channel == "background"
        names = [text_at(call.input, name) for name in _TASK_FIELDS] if of_task else []
        for path in (*call.paths, call.command or ""):
            names += _TASK_FILE.findall(path)
        for name in names:
            if name and name not in self._begun:
                what = f"the call that began {name[:40]} in the background"
                yield Gap("missing", call.line, what, "background")

    def _call(
        self, record: SessionRecord, block: dict[str, Any], agent: str, *, nested: bool
    ) -> Call:
        name, tool = text_at(block, "id"), text_at(block, "name")
        asked = block.get("input")
        if tool in _SPAWNS and not nested and not text_at(asked, "resume"):
            self._spawned[name] = text_at(asked, "name")
        elif tool in _WAKES or (tool in _SPAWNS and not nested):
            self._woken[name] = next(filter(None, (text_at(asked, one) for one in _WOKEN)), "")
        return self.called(record, name, tool, asked, agent=agent, nested=nested)

    def _result(
        self,
        record: SessionRecord,
        value: dict[str, Any],
        block: dict[str, Any],
        agent: str,
        *,
        nested: bool,
    ) -> Iterator[Item]:
        call = text_at(block, "tool_use_id")
        channel = self.channels.get(call, "tool")
        content = block.get("content")
        texts = [content] if isinstance(content, str) else []
        if not isinstance(content, str | list | None):
            yield from self.strange_type(record, "tool_result.content", content)
        for part in content if isinstance(content, list) else ():
            kind = part.get("type") if isinstance(part, dict) else None
            if kind in ("text", "tool_reference"):
                texts += strings_of(part)
            elif kind in ("image", "document"):
                yield Gap("opaque", record.line, f"{kind} in the result of a call", channel)
            else:
                yield from self.strange_type(record, f"tool_result.{text_at(part, 'type')}", part)
        failed = block.get("is_error") is True
        whole = texts[0] if len(texts) == 1 else text_of_parts(texts)
        is_allowed = denied = by_hook = False
        if failed:
            decision = text_at(value, "permissionDecision", "decision")
            is_allowed = decision == "accept"
            denied = decision == "reject" or ("toolDenialKind" in value and not is_allowed)
            by_hook = denied and text_at(value, "permissionDecision", "source") == "hook"
        if not (denied or (failed and is_refusal(whole))):
            yield from self._began_others(record, value, call, texts)
        named = text_at(value, "toolUseResult", "file", "filePath") or None
        given = self.given(
            record, channel, whole, call=call, named=named, agent=agent, nested=nested,
            failed=failed, denied=denied,
        )  # fmt: skip
        if by_hook or is_allowed:
            given = given._replace(decided="by hook" if by_hook else "allowed")
        yield given
        for text in texts:
            if "<system-reminder>" in text:
                yield from self._inserted(record, text, agent=agent, nested=nested, sure=False)

    def _began_others(
        self, record: SessionRecord, value: dict[str, Any], call: str, texts: list[str]
    ) -> list[Gap]:
        """Agents and commands that a call began, or woke, that was not refused.

        An agent that failed may have read before. It is seen where its own file is, or where each
        call that its report counts stands in this file.
        """
        found: list[Gap] = []
        result = value.get("toolUseResult")
        child = text_at(result, "agentId") or self._children.get(call, "")
        count = result.get("totalToolUseCount") if isinstance(result, dict) else None
        if child or call in self._spawned:
            if name := self._spawned.get(call):
                self._names[name] = child
            if child not in self._nested or self._nested[child] != count:
                what = f"the session of subagent {child[:40] or 'without an id'}"
                begins = call if child and call in self._spawned else ""
                made = count if isinstance(count, int) else 0
                gap = Gap("missing", record.line, what, "subagent", child=child, call=begins)
                found.append(gap._replace(calls=made))
        woken = self._woken.get(call)
        if woken is not None and woken not in _PARENTS:
            what = f"the session of the agent {woken[:40] or 'without a name'}, which got a message"
            child = self._names.get(woken, woken)
            found += (Gap("missing", record.line, what, "subagent", child=child),)
        if self.channels.get(call, "tool") in _BEGINS:
            for text in texts:
                if text.startswith(_BEGINNINGS):
                    for named in _BEGUN.findall(text[:_HEAD]):
                        self._begun.update(filter(None, named))
            if child:
                self._begun.add(child)
        return found

    def _attachment(
        self, record: SessionRecord, value: dict[str, Any], agent: str
    ) -> Iterator[Item]:
        attachment = value.get("attachment")
        kind = text_at(attachment, "type")
        rendered = text_of([value.get("rendered"), value.get("renderedInHumanTurn")])
        if kind not in _ATTACHMENTS:
            yield from self.strange_type(record, f"attachment.{kind}", value)
            return
        assert isinstance(attachment, dict)  # else it has no type
        channel, known = _ATTACHMENTS[kind]
        if not known.issuperset(attachment):
            yield from self.strange_fields(record, attachment, known, "an attachment", kind)
        several = "skills" if kind == "invoked_skills" else "files"
        files: list[Any] = []
        if several in attachment:
            what = f"attachment.{several}"
            files = yield from self.list_of(record, attachment[several], what)
        for file in files or [attachment]:
            if not isinstance(file, dict):
                yield from self.strange_type(record, f"attachment.{several}", file)
                continue
            named, has_text, encoded = _content(file)
            if channel in ("system", "hook") or kind in _NO_TEXT:
                named = []
            text = text_of(file)
            is_again = rendered and len(files) < 2 and _adds_nothing(rendered, text)
            if not (has_text or not named):
                text = ""
            if is_again:
                text, rendered = f"{text}\n{rendered}" if text else rendered, ""
            told = kind in _TOLD_OF_CALLS and text_of(file.get("content"))
            about = text_at(file, "toolUseID") if told else None
            for name in named or [None]:
                given = self.given(record, channel, text, named=name, agent=agent)
                yield given if about is None else given._replace(about=about)
            if encoded:
                what = f"{named[0] if named else kind}, which is no text, in an attachment"
                yield Gap("opaque", record.line, what, channel)
        if rendered:
            way: Channel = "mention" if channel == "names" else channel  # it holds more than names
            yield self.given(record, way, rendered, agent=agent)

    def _progress(self, record: SessionRecord, value: dict[str, Any]) -> Iterator[Item]:
        """Calls of a subagent, or of a skill that runs as one: in the file of its parent alone.

        That is so to 2.1.63.
        """
        data = value.get("data")
        kind = text_at(data, "type")
        if kind not in _PROGRESS:
            yield from self.strange_type(record, f"progress.{kind}", value)
        elif kind in _OF_AGENTS:
            assert isinstance(data, dict)
            inner = data.get("message")
            agent = text_at(data, "agentId") or "subagent"
            self._children[text_at(value, "parentToolUseID")] = agent
            if isinstance(inner, dict) and inner.get("type") in ("user", "assistant"):
                for item in self._message(record, inner, agent, nested=True):
                    self._nested[agent] += isinstance(item, Call)
                    yield item
            else:
                yield Gap("unknown", record.line, "progress of a subagent of another shape")
                yield from strange_text(record, inner)

    def _system(self, record: SessionRecord, value: dict[str, Any]) -> Iterator[Item]:
        kind = text_at(value, "subtype")
        if kind not in _SYSTEM:
            yield from self.strange_type(record, f"system.{kind}", value)
            return
        yield from self.strange_fields(
            record, value, _SYSTEM_FIELDS, "a record of the system", kind
        )
        text = text_of(value.get("content"))
        if text:
            yield self.given(record, "system", text, sure=kind == "local_command")
        hook = ("hookAdditionalContext", "hookErrors", "stopReason")
        said = text_of([value.get(name) for name in hook])
        if said:
            yield self.given(record, "hook", said, sure=False)


def _adds_nothing(rendered: str, text: str) -> bool:
    r"""Whether all lines that were sent stand in the attachment, which says of what it is.

    Around them are lines of the program that name the file or the folder, and line numbers.

    >>> _adds_nothing("Result of calling the Read tool:\n1\tx = 1", "a.py\nx = 1")
    True
    >>> _adds_nothing("Result of calling the Read tool:\n1\tx = 1", "a.py\ny = 1")
    False
    """
    lines = {line.strip() for line in text.splitlines()} | {""}
    for line in _AROUND.sub("", rendered).splitlines():
        called = _CALLED.fullmatch(line)
        if called is not None and (called[1] or called[2]) in lines:
            continue
        if line.strip() not in lines and _NUMBER.sub("", line, 1).strip() not in lines:
            return False
    return True


_AROUND = re.compile(
    r"</?system-reminder>|^Result of calling the (?:Read|Bash) tool:$", re.MULTILINE
)
_CALLED = re.compile(
    r"""Called\ the\ (?:
    Read\ tool\ with\ the\ following\ input:\ \{"file_path":"([^"\\]+)"
      (?:,"(?:offset|limit)":[0-9]+)*\}
    | Bash\ tool\ with\ the\ following\ input:\ \{"command":"ls\ ([^"\\]+)"
      ,"description":"Lists\ files\ in\ \2"\})""",
    re.VERBOSE,
)
"""The program says of a mention that it called a tool: it names the file, or the folder."""

_NUMBER = re.compile(r" *[0-9]+(?:\t|\u2192)")


def _content(value: object) -> tuple[list[str | None], bool, bool]:
    """The files that an attachment names, whether it has a text beside, and whether an image."""
    has_text = encoded = False
    named: dict[str | None, None] = {}
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            has_text = has_text or one.strip() != ""
        elif isinstance(one, dict):
            encoded = encoded or one.get("type") in _ENCODED_TYPES or not _ENCODED.isdisjoint(one)
            todo += [inner for name, inner in one.items() if name not in _NO_CONTENT]
            for name in _NAMES_OF_FILES:
                said = one.get(name)
                if said and isinstance(said, str):
                    named[said] = None
        elif isinstance(one, list):
            todo += one
    return list(named), has_text, encoded
