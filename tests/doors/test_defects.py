"""Which tests show that we have none of the originals' defects (spec: nbs-compat B12, C5, C10)."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]

DEFECTS = {
    "B12.1 caps at 256": "test_nbs_bus_defects.py nothing_is_capped default_limit_prunes",
    "B12.2 a poison file": "test_nbs_bus_defects.py no_file_stops_a_command",
    "B12.3 dedup": "test_nbs_bus_defects.py simultaneous_publishers key_has_two_parts"
    " a_clock_that_is_ahead",
    "B12.4 no index": "test_nbs_bus_defects.py no_pending_file_is_opened",
    "B12.5 lost payloads, slips": "test_nbs_bus_defects.py begins_with_dashes"
    " behind_an_option a_slip_in_an_option",
    "B12.6 not YAML": "test_nbs_bus_defects.py any_parser_reads control_bytes",
    "B12.7 temporary files": "test_nbs_bus_defects.py unfinished_file no_temporary_file",
    "B12.8 durability, order": "test_nbs_bus_defects.py chained_and_synced clock_that_goes",
    "B12.9 consumers": "test_nbs_bus_defects.py no_two_consumers racing_acknowledgements"
    " a_consumer_is_woken",
    "B12.10 the trail": "test_nbs_bus_defects.py who_acknowledged writes_over_nothing",
    "B12.11 the Scribe": "test_nbs_scribe_defects.py have_ids_of_their_own"
    " programs_collide abort_nothing no_control_character what_is_superseded lost_to_a_dedup"
    " event_are_one what_it_writes_it_reads",
    "B12.12 the documents": "test_nbs_bus_defects.py each_documented_setting"
    " its_second_word tail_of_a_long_comment; test_nbs_bus.py startup_loop;"
    " test_golden_documents.py a_name_of_the_documents an_event_is_written_again;"
    " test_nbs_scribe_defects.py one_list_of_statuses",
    "C5 spawn waits": "test_nbs_worker_defects.py spawn_waits",
    "C5 any post completes it": "test_nbs_worker_defects.py any_message_in_a_chat",
    "C5 the first state in the file": "test_nbs_worker_defects.py the_first_line_that_looks"
    " findings_end",
    "C5 cut at 64 KiB; the caller's folder": "test_nbs_worker_defects.py long_skill"
    " look_under_the_folder",
    "C5 names": "test_nbs_worker_defects.py a_name_that_is_taken its_own_spawner called_alike",
    "C5 deaths, events": "test_nbs_worker_defects.py tells_of_its_death_again no_event_tells"
    " one_that_is_stuck",
    "C5 launch": "test_nbs_worker_defects.py permission_checks variables_of_whoever"
    " a_lock_that_its_children",
    "C10.1 isolation": "test_acts_pythia.py given_the_log_and_nothing_else;"
    " test_pythia_namespace.py nothing_of_the_chat; test_nosy_pythias.py"
    " nothing_to_read; test_errands.py all_that_a_run_gives",
    "C10.2 evidence": "test_nbs_worker_defects.py a_kill_removes_the_log"
    " who_may_write_there misses_the_first_output task_file_is_overwritten",
    "C10.3 a consumer of checkpoints": "test_acts_pythia.py one_event_gives_one"
    " decisions_that_she_was_not_given; test_pythia_race.py of_ten_who_race;"
    " test_nbs_scribe_defects.py checkpoints_come_by_the_count",
    "C10.4 lost unread": "test_nbs_chat_defects.py last_swallows after_swallows"
    " sending_swallows an_archive_swallows a_rotation_swallows clamps_a_reader above_256_readers",
    "C10.5 aborts": "test_nbs_chat_defects.py a_wrong_handle fifty_third above_ten_thousand"
    " a_long_line; test_nbs_scribe_defects.py no_limit_to_participants",
    "C10.6 storage": "test_nbs_chat_defects.py nothing_checks_the_file a_repair"
    " a_deletion_leaves_no_trace; test_nbs_scribe_defects.py edited_in_the_file",
    "C10.7 output": "test_nbs_chat_defects.py passes_for_another_message a_search_without;"
    " test_nbs_scribe_defects.py pass_for_another_entry",
    "C10.8 mentions": "test_nbs_chat_defects.py begins_alike first_suffix seventeenth"
    " nobody_will_read before_it_is_delivered",
    "C10.9 poll": "test_nbs_chat_defects.py gives_only_the_last goes_deaf ones_own_message"
    " once_a_second",
    "C10.10 workers": "test_nbs_worker_defects.py whatever_a_worker_writes exit_code_is_lost"
    " spawn_waits tells_of_its_death",
    "C10.11 tests that can fail": "test_nbs_worker.py each_row every_verb_option_and_code;"
    " test_nbs_bus.py each_row every_command_option; test_nbs_chat.py row"
    " every_command_option; test_nbs_scribe.py each_row every_command_and_option",
    "C10.12 what it costs": "test_agent_outputs.py last_result_of_a_stream"
    " a_price_that_is_none; test_errands.py all_that_a_run_gives",
}
"""Files of tests, and words of the names of those in them that try the defect."""


def named(where: str) -> Iterator[tuple[str, str]]:
    for part in where.split("; "):
        path, *names = part.split()
        for name in names:
            yield path, name


def test_each_listed_defect_has_its_tests() -> None:
    numbers = {defect.split()[0] for defect in DEFECTS}
    assert numbers == {
        "C5",
        *(f"B12.{number}" for number in range(1, 13)),
        *(f"C10.{number}" for number in range(1, 13)),
    }
    for defect, where in DEFECTS.items():
        for path, name in named(where):
            tree = ast.parse(next(TESTS.rglob(path)).read_text("utf-8"))
            tests = [
                node.name
                for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
            ]
            assert [test for test in tests if name in test], (defect, path, name)
