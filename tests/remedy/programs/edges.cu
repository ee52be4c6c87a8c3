/* edges SCENE [FORKS]: one situation each in which a correction could be noticed; prints what the program sees. */
#include "memory_scenes.h"
#include "process_scenes.h"
#include "result_scenes.h"
#include "transfer_scenes.h"
#include "unseen_scenes.h"
#include "upload_scenes.h"
#include "wait_scenes.h"

namespace
{

const struct {
    const char *name;
    void (*play)();
} scenes[] = {
    {"memory_runs_out", memory_runs_out},
    {"sizes_change", sizes_change},
    {"sizes_grow", sizes_grow},
    {"sizes_are_told", sizes_are_told},
    {"freed_twice", freed_twice},
    {"asked_about_when_freed", asked_about_when_freed},
    {"given_to_others", given_to_others},
    {"event_times", event_times},
    {"host_functions", host_functions},
    {"nothing_is_freed", nothing_is_freed},
    {"addresses_in_memory", addresses_in_memory},
    {"value_is_awaited", value_is_awaited},
    {"stream_is_destroyed", stream_is_destroyed},
    {"own_stream_is_captured", own_stream_is_captured},
    {"wrong_end_of_a_capture", wrong_end_of_a_capture},
    {"prints_at_the_end", prints_at_the_end},
    {"streams_come_later", streams_come_later},
    {"kernels_begin_early", kernels_begin_early},
    {"calls_are_handed_out", calls_are_handed_out},
    {"asks_before_it_lets_go", asks_before_it_lets_go},
    {"asks_behind_later_work", asks_behind_later_work},
    {"managed_memory", managed_memory},
    {"mapped_memory", mapped_memory},
    {"unified_addresses", unified_addresses},
    {"cooperative_launch", cooperative_launch},
    {"source_is_overwritten", source_is_overwritten},
    {"transfers_under_way", transfers_under_way},
    {"rows_lie_apart", rows_lie_apart},
    {"freed_under_way", freed_under_way},
    {"handed_over", handed_over},
    {"contents_come_back", contents_come_back},
    {"contents_are_there", contents_are_there},
    {"sent_again", sent_again},
    {"sent_where_it_is", sent_where_it_is},
    {"sent_between_streams", sent_between_streams},
    {"sent_to_streams", sent_to_streams},
    {"source_is_filled_later", source_is_filled_later},
    {"source_is_being_filled", source_is_being_filled},
    {"pool_memory_goes_round", pool_memory_goes_round},
    {"sent_by_a_graph", sent_by_a_graph},
    {"sent_to_managed_memory", sent_to_managed_memory},
    {"result_is_read", result_is_read},
    {"result_is_overwritten", result_is_overwritten},
    {"result_of_managed_memory", result_of_managed_memory},
    {"result_is_on_the_stack", result_is_on_the_stack},
    {"result_is_written", result_is_written},
#ifdef RAW_SYSTEM_CALLS
    {"result_is_written_raw", result_is_written_raw},
#endif
    {"result_is_read_over", result_is_read_over},
    {"result_is_freed", result_is_freed},
    {"results_are_written_together", results_are_written_together},
    {"result_is_on_the_stack_of_a_coroutine", result_is_on_the_stack_of_a_coroutine},
    {"result_is_read_by_another_thread", result_is_read_by_another_thread},
    {"result_is_on_the_heap", result_is_on_the_heap},
    {"heap_has_many_blocks", heap_has_many_blocks},
    {"result_is_on_a_stack_from_the_heap", result_is_on_a_stack_from_the_heap},
    {"results_share_pages", results_share_pages},
    {"library_is_loaded", library_is_loaded},
    {"result_is_shared", result_is_shared},
    {"child_reads", child_reads},
    {"command_is_beside_a_result", command_is_beside_a_result},
    {"handler_blocks_all_signals", handler_blocks_all_signals},
    {"system_call_has_six_arguments", system_call_has_six_arguments},
    {"forks_beside_downloads", forks_beside_downloads},
    {"reads_at_exit", reads_at_exit},
    {"own_handler", own_handler},
    {"fault_of_its_own", fault_of_its_own},
    {"signal_from_outside", signal_from_outside},
    {"blocked_signals", blocked_signals},
    {"starts_again", starts_again},
    {"two_contexts", two_contexts},
    {"threads_at_once", threads_at_once},
    {"memory_is_read_elsewhere", memory_is_read_elsewhere},
    {"reads_elsewhere", reads_elsewhere},
    {"address_is_kept", address_is_kept},
    {"address_is_before_the_block", address_is_before_the_block},
    {"ordinary_memory", ordinary_memory},
    {"handler_runs_in_sigsuspend", handler_runs_in_sigsuspend},
    {"handler_runs_in_poll", handler_runs_in_poll},
    {"handler_runs_in_select", handler_runs_in_select},
    {"handler_runs_in_epoll", handler_runs_in_epoll},
    {"thread_begins_with_signals_blocked", thread_begins_with_signals_blocked},
    {"asks_about_signals", asks_about_signals},
    {"read_is_under_way", read_is_under_way},
    {"numbers_files", numbers_files},
    {"sparse_memory", sparse_memory},
    {"work_fails", work_fails},
};

} // namespace

int main(int argument_count, char **arguments)
{
    for (const auto &scene : scenes)
        if (argument_count > 1 && std::strcmp(arguments[1], scene.name) == 0) {
            forks = argument_count > 2 ? std::atoi(arguments[2]) : 0;
            REQUIRE(cudaFree(nullptr));
            scene.play();
            return 0;
        }
    return 2;
}
