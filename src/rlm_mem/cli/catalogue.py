"""The list of commands: name, panel in the help, summary and function of each.

``rlm-mem --help`` and the help of a group are printed from this list, without loading a command or Typer,
whose own help needs Rich and takes far longer. A command line loads only the module of its command. This module does
not import `typing`, which takes as long to load as everything else.
"""

from __future__ import annotations

SUMMARY = "Long-term memory for LLM agents: plain files, links, and answers found by programs."


class CommandRow:
    """A command.

    Args:
        path: its full name, such as ``store check``.
        target: module below ``rlm_mem.cli`` and function, such as ``maintenance:check``.
        summary: what it does, in at most 64 characters; the function's docstring has the details.
    """

    def __init__(self, path: str, target: str, summary: str) -> None:
        self.path = path
        self.target = target
        self.summary = summary

    @property
    def name(self) -> str:
        """The last word of the path."""
        return self.path.rpartition(" ")[2]


class GroupRow:
    """Commands under a noun.

    Args:
        default: the command to call if at least three words follow and the first is not a command of the group.
    """

    def __init__(self, name: str, summary: str, default: str = "") -> None:
        self.name = name
        self.summary = summary
        self.default = default


class GlobalOption:
    """An option before the command."""

    def __init__(self, flags: tuple[str, ...], metavar: str, help: str) -> None:
        self.flags = flags
        self.metavar = metavar
        self.help = help


OPTIONS: dict[str, GlobalOption] = {
    "brain": GlobalOption(("--brain",), "PATH", "The brain folder or DSN, for any command."),
    "namespace": GlobalOption(("--namespace",), "NAME", "The namespace, for any command."),
    "log_level": GlobalOption(("--log-level",), "LEVEL", "Log level on stderr: debug, info, warning, error."),
    "log_format": GlobalOption(("--log-format",), "FORM", "text, or json with one object per line."),
    "version": GlobalOption(("--version",), "", "Print the version."),
    "install_completion": GlobalOption(("--install-completion",), "", "Install completion for this shell."),
    "show_completion": GlobalOption(("--show-completion",), "", "Print the completion script of this shell."),
    "help": GlobalOption(("--help", "-h"), "", "Show this help, or that of a command."),
}

_COMMANDS = (
    ("remember", "remember:remember", "Remember a text, files or a folder, and link it."),
    ("recall", "ask:recall", "Answer a question with programs that search and read."),
    ("search", "read:search", "Search memories by words, names and dates; no model."),
    ("reason", "ask:reason", "Draw a conclusion from several memories and their links."),
    ("verify", "receipt:verify", "Verify a receipt of an answer by running its programs again."),
    ("query", "continuum:query", "Find earlier work on a goal, weighted by its success."),
    ("show", "read:show", "Show chunks in full: content, metadata and links."),
    ("list", "read:list_", "List chunks, by tag, type, conversation and time."),
    ("edit", "edit:edit", "Edit a chunk in your editor (VISUAL or EDITOR)."),
    ("delete", "edit:delete", "Delete chunks; rlm-mem chunk restore restores them."),
    ("erase", "erase:erase_", "Erase a person, a source or a namespace; verify it."),
    ("undo", "edit:undo", "Undo the last change, or the last change of one chunk."),
    ("import", "interchange:import_", "Import memories, chats and notes, also from other tools."),
    ("export", "interchange:export", "Export as Markdown (for Obsidian), JSON lines or zip."),
    ("install", "agents:install", "Connect an agent: configure its MCP client or hooks."),
    ("uninstall", "agents:uninstall", "Disconnect agents: remove the entry and the hooks."),
    ("serve", "serve:serve", "Serve MCP, the HTTP interface and the dashboard."),
    ("doctor", "agents:doctor", "Check the installation, the memory and the clients."),
    ("mcp", "serve:mcp", "Serve MCP on stdin and stdout; started by clients."),
    ("hook session-start", "hooks:session_start", "At the start of a session: print memories for it."),
    ("hook subagent-start", "hooks:subagent_start", "At the start of a subagent: print memories for it."),
    ("hook user-prompt", "hooks:user_prompt", "With a prompt: print the memories that match it."),
    ("hook tool-use", "hooks:tool_use", "With a command or an edit: print the memories that speak to it."),
    ("hook stop", "hooks:stop", "At the end of a turn: capture memories by rules."),
    ("hook pre-compact", "hooks:pre_compact", "Before the context is compacted: capture memories by rules."),
    ("hook session-end", "hooks:session_end", "At the end of a session: capture what is left, by rules."),
    ("hook context", "hooks:context", "Show which memories hooks give to an agent here, and why."),
    ("hook pause", "hooks:pause_", "Pause all hooks: they give and capture nothing."),
    ("hook resume", "hooks:resume_", "Resume the hooks after a pause."),
    ("hook rules", "hooks:rules", "Show the capture rules; --write creates a file to edit."),
    ("hook try", "hooks:try_", "Show what the capture rules would keep of a transcript."),
    ("project show", "project:show", "Show the project of this folder and its namespace."),
    ("project import", "project:import_", "Remember instructions, memory bank and decisions."),
    ("project move", "project:move", "Move memories into another namespace: shared, or a project."),
    ("chunk update", "edit:update", "Change content, tags, type or confidence."),
    ("chunk restore", "edit:restore_chunks", "Restore deleted chunks."),
    ("chunk archive", "edit:archive", "Archive or restore all of a conversation, tag or source."),
    ("chunk supersede", "edit:supersede", "Let one chunk replace another; the old one is kept."),
    ("chunk quarantine", "edit:quarantine", "Hide a chunk from all searches, recalls and listings."),
    ("chunk release", "edit:release", "Release a chunk from quarantine."),
    ("chunk history", "read:history", "Show the versions of a chunk."),
    ("link add", "edit:link", "Link two chunks: rlm-mem link add FROM TO supports."),
    ("link remove", "edit:unlink", "Remove the links from one chunk to another."),
    ("link list", "read:links", "Show the links from and to a chunk."),
    ("store init", "maintenance:init", "Create a memory: folder, settings, personalities, gauges."),
    ("store stats", "read:stats", "Show how much is remembered."),
    ("store tags", "read:tags", "List the tags, most common first."),
    ("store conversations", "read:conversations", "List the conversations."),
    ("store namespaces", "read:namespaces", "List the namespaces of this brain."),
    ("store events", "records:events", "Show the audit log: when, who, what, and which chunk."),
    ("store check", "maintenance:check", "Check files, links and index against each other."),
    ("store repair", "maintenance:repair", "Repair what check finds; without --apply only a report."),
    ("store sync", "maintenance:sync", "Index files edited by hand, by git or by other programs."),
    ("store rebuild", "maintenance:rebuild", "Rebuild the index from the files."),
    ("store checkpoint", "maintenance:checkpoint", "Write access counts and JSON views to files."),
    ("store vacuum", "backup:vacuum", "Free space that the index does not need."),
    ("store backup", "backup:backup", "Write everything into one compressed file."),
    ("store restore", "backup:restore", "Restore a whole memory from a backup."),
    ("store copy", "machines:copy", "Copy a memory between folders and databases, and compare."),
    ("tier list", "traces:tier_list", "List tiered memories, most reliable first."),
    ("tier show", "traces:tier_show", "Show a tiered memory in full."),
    ("tier consolidate", "continuum:consolidate", "Promote memories with proven success."),
    ("tier prune", "continuum:prune", "Archive, demote or flag memories; a dry run without --apply."),
    ("tier log", "traces:tier_log", "Show transitions and other changes with their reasons."),
    ("tier undo", "traces:tier_undo", "Undo a transition: restore its files byte for byte."),
    ("tier health", "traces:tier_health", "Show sizes of tiers, consolidation, reuse and promotions."),
    ("tier check", "traces:tier_check", "List memory files that break a rule."),
    ("tier skills", "continuum:tier_skills", "Write stable memories as skills for agents."),
    ("trace record", "traces:trace_record", "Write the log of an interaction or a session."),
    ("trace use", "traces:trace_use", "Record that a memory was used, and whether it succeeded."),
    ("review list", "review:review_list", "List cases, the most important first."),
    ("review show", "review:review_show", "Show a case with its evidence for and against."),
    (
        "review approve",
        "review:review_approve",
        "Approve a case: promote, keep, release or link, by its kind.",
    ),
    ("review defer", "review:review_defer", "Postpone the decision on a case."),
    ("review find", "review:review_find", "Let a model find what later memories replace."),
    ("review judge", "review:review_judge", "Let a model decide proposals that it is certain of."),
    ("review reject", "review:review_reject", "Reject a case: keep, demote or archive, by its kind."),
    ("state show", "traces:state_show", "Show plan, context, variables, history and constraints."),
    ("state set", "traces:state_set", "Replace one part of the working state."),
    ("state step", "traces:state_step", "Update the working state after a tool call."),
    ("state clear", "traces:state_clear", "Clear the working state."),
    ("trajectories list", "records:trajectories_list", "List the recorded recalls, newest first."),
    ("trajectories show", "records:trajectories_show", "Show the steps and the outcome of one recall."),
    (
        "trajectories replay",
        "records:trajectories_replay",
        "Run recorded programs again and compare the answers.",
    ),
    ("trajectories export", "records:trajectories_export", "Write recorded recalls as training data."),
    ("trajectories costs", "records:costs", "Show what recalls cost, by day, model and operation."),
    ("persona show", "persona:show", "Show the composed system prompt."),
    ("persona list", "persona:list_", "List the modes, the sliders and the gauges."),
    ("persona slider", "persona:slider", "Show what a slider controls and what its values mean."),
    ("persona use", "persona:use", "Change the mode of a session, and the sliders it sets."),
    ("persona set", "persona:set_", "Set a slider of a session by hand."),
    ("persona reset", "persona:reset", "Reset sliders set by hand to the values of the mode."),
    ("persona say", "persona:say", 'Carry out a chat command such as "Set humor to 20%".'),
    ("persona hud", "persona:hud", "Show live figures: sliders, memory, store, tiers, cost."),
    ("token create", "tokens:create", "Create a token with a scope; it is printed only once."),
    ("token list", "tokens:list_", "List the tokens with scope, state and expiry."),
    ("token revoke", "tokens:revoke", "Revoke a token: servers refuse it at once."),
    ("token readmit", "tokens:readmit", "Accept the tokens of an OAuth subject again."),
    ("config list", "settings:list_", "List the settings and the source of each."),
    ("config get", "settings:get", "Print one setting."),
    ("config set", "settings:set_", "Write a setting to config.toml, keeping comments."),
    ("config unset", "settings:unset", "Remove a setting from config.toml."),
    ("shards list", "machines:shards_list", "Show which database holds which namespace."),
    ("shards assign", "machines:shards_assign", "Assign a new namespace to a database."),
    ("shards move", "machines:shards_move", "Move a namespace to another database while it is in use."),
    ("shards purge", "machines:shards_purge", "Remove the rows that a move left in the old database."),
    ("demo", "demo:demo", "Remember half a year of a team's notes, and answer questions."),
    ("restore", "edit:restore", "Restore deleted chunks, or a whole memory from a backup."),
)

_GROUPS = (
    GroupRow("hook", "Commands for the hooks of coding agents."),
    GroupRow("project", "The memories of one repository: show, import, move."),
    GroupRow("chunk", "Chunks: update, supersede, archive, quarantine, restore, history."),
    GroupRow("link", "Links between chunks: add, remove, list.", default="add"),
    GroupRow("store", "The whole memory: statistics, audit log, check, backup, copy."),
    GroupRow("tier", "Tiered memories: list, consolidate, prune, undo."),
    GroupRow("trace", "Logs of work: record what was done, and its later use."),
    GroupRow("review", "Review cases: captures, replacements, promotions."),
    GroupRow("state", "The working state of the current execution."),
    GroupRow("trajectories", "Recorded recalls: list, show, replay, export, costs."),
    GroupRow("persona", "The persona of a session: modes, sliders and the HUD."),
    GroupRow("token", "Tokens for the clients of a server."),
    GroupRow("config", "The settings: list, get, set."),
    GroupRow("shards", "Namespaces over several PostgreSQL databases."),
)

#: Panels of the help with their commands. `restore`, a former name of two commands that its argument distinguishes,
#: works but is not in the help.
_PANELS = (
    ("Remember and ask", ("remember", "recall", "search", "reason", "verify", "query")),
    ("Look and change", ("show", "list", "edit", "delete", "erase", "undo", "import", "export")),
    ("Agents", ("install", "uninstall", "serve", "token", "doctor", "mcp", "hook", "project")),
    (
        "More, by subject",
        ("chunk", "link", "store", "tier", "trace", "review", "state", "trajectories", "persona", "config",
         "shards", "demo"),
    ),
)  # fmt: skip

#: Names of commands before they were grouped, names of the tools of the MCP server that do the same, and what people
#: try first: they work but are not in the help.
FORMER: dict[str, str] = {
    "add": "remember",
    "ask": "recall",
    "status": "store stats",
    "get": "show",
    "forget": "delete",
    **{name: f"chunk {name}" for name in ("update", "history")},
    "links": "link list",
    "unlink": "link remove",
    "index": "store",
    "config show": "config list",
    **{
        name: f"store {name}"
        for name in ("init", "stats", "tags", "conversations", "namespaces", "events", "check", "repair", "sync",
                     "checkpoint", "vacuum", "backup", "copy")
    },
    **{name: f"tier {name}" for name in ("consolidate", "prune")},
    **{f"trace {name}": f"tier {name}" for name in ("list", "show", "log", "undo", "health", "check")},
    "costs": "trajectories costs",
    "hud": "persona hud",
}  # fmt: skip

_BY_PATH: dict[str, CommandRow | GroupRow] = {group.name: group for group in _GROUPS}
_BY_PATH.update({row[0]: CommandRow(*row) for row in _COMMANDS})

#: Titles and rows of ``rlm-mem --help``.
PANELS: tuple[tuple[str, tuple[CommandRow | GroupRow, ...]], ...] = tuple(
    (title, tuple(_BY_PATH[name] for name in names)) for title, names in _PANELS
)


def find(path: str) -> CommandRow | GroupRow | None:
    """Return the command or group with this name or former name: ``check`` is now ``store check``."""
    return _BY_PATH.get(FORMER.get(path, path))


def rows_of(group: GroupRow | None) -> tuple[CommandRow | GroupRow, ...]:
    """Return the rows in the help of a group; None: in the help of ``rlm-mem`` itself."""
    if group is None:
        return tuple(row for _, rows in PANELS for row in rows)
    return tuple(row for path, row in _BY_PATH.items() if path.startswith(f"{group.name} "))
