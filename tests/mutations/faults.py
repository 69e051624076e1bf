"""Small faults in the model, one at a time, each with the test that notices it.

Of every fault a reader should be able to say what it breaks: a sign, a factor, a lost term, the wrong side of a comparison,
the smaller for the larger.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One wrong fragment of source in the place of the right one, which stands once in its file."""

    name: str
    file: str
    right: str
    wrong: str
    caught_by: str

    @property
    def module(self) -> str:
        """The dotted name of the module."""
        return self.file.removesuffix(".py").replace("/", ".")

    def put_into(self, source: str) -> str:
        """The source with the fault."""
        return source.replace(self.right, self.wrong)


EVENTS = "tests/schedule/test_schedule_events.py::"
SERVING = "tests/schedule/test_schedule_serving.py::"
STREAMS = "tests/schedule/test_schedule_streams.py::"
TRAINING = "tests/schedule/test_schedule_training.py::"
CORES = "tests/unit/test_unit_cores.py::"
COST = "tests/unit/test_unit_cost.py::"
TODAY = "tests/unit/test_unit_today.py::"
MEASURED = "tests/unit/test_unit_measured.py::"
POWER = "tests/unit/test_unit_power.py::"
PACKAGE = "tests/unit/test_unit_package.py::"
EQUATIONS = "tests/unit/test_unit_equations.py::"
LOWER = "tests/unit/test_unit_lower.py::"
TRAFFIC = "tests/unit/test_unit_traffic.py::"
PROCESSOR = "tests/unit/test_unit_processor.py::"
MOBILE = "tests/unit/test_unit_mobile.py::"
MENUS = "tests/unit/test_unit_menus.py::"
ROUNDING = "tests/unit/test_unit_rounding.py::"
SERIAL = "tests/schedule/test_schedule_timeline.py::"

ROWS: dict[str, list[tuple[str, str, str, str]]] = {  # file: what is wrong, right, wrong, the test that fails
    "cost/gpu.py": [
        ("updates of one address pass at once",
         "np.maximum(rounds + sums + row, updates)", "np.minimum(rounds + sums + row, updates)",
         ROUNDING + "test_updates_of_one_address_come_one_after_the_other"),
        ("memory runs at the bandwidth of the data sheet",
         "(t.device.memory.bandwidth * t.device.memory.achievable * family)",
         "(t.device.memory.bandwidth * family)",
         COST + "test_a_normalisation_reaches_its_share_of_the_bandwidth"),
        ("a product takes twice its time",
         "t.cta_work * t.waves / t.rate + t.cold_start_clk",
         "2.0 * t.cta_work * t.waves / t.rate + t.cold_start_clk",
         COST + "test_address_translation_adds_clocks_for_each_page"),
        ("the first round of loads is free", "near) / t.in_flight + t.device.memory.latency", "near) / t.in_flight",
         EQUATIONS + "test_rounds_of_bytes_in_flight_each_take_a_latency_and_the_first_one_too"),
        ("a chain of launches has one gap", "t.device.launch.latency * t.kernels.chain", "t.device.launch.latency",
         COST + "test_a_second_kernel_adds_up_the_parts_of_a_split"),
        ("CTAs that wait for an SM have loads in flight",
         "np.minimum(self.ctas, self.in_slots)",
         "np.maximum(self.ctas, self.in_slots)",
         EQUATIONS + "test_rounds_of_bytes_in_flight_each_take_a_latency_and_the_first_one_too"),
        ("the L2 runs at any clock alike",
         "t.device.l2.bandwidth * t.clock * t.constants",
         "t.device.l2.bandwidth * t.device.clock.boost * t.constants",
         EQUATIONS + "test_traffic_through_the_l2_is_that_of_all_ctas_and_its_bandwidth_goes_with_the_clock"),
    ],
    "cost/retention.py": [
        ("all that is in flight comes between two of three reads", "held * 2.0 / np.maximum(kernels.row_reads, 2.0)",
         "held * 1.0",
         TRAFFIC + "test_rows_are_read_again_from_memory_where_all_in_flight_outgrow_the_l2"),
        ("a set holds one line less", "np.where(i <= most, term, 0.0)", "np.where(i < most, term, 0.0)",
         TRAFFIC + "test_sets_that_hold_their_lines_of_a_round_hit"),
        ("parts of an L2 keep no copies", "device.l2.size / (1.0 if", "device.l2.size * (1.0 if",
         TODAY + "test_parts_of_an_l2_that_keep_copies_hold_half_as_much"),
    ],
    "cost/dispatch.py": [
    ],
    "cost/occupancy.py": [
        ("occupancy is the loosest limit",
         "np.minimum(np.minimum(by_registers, by_shared)",
         "np.maximum(np.maximum(by_registers, by_shared)",
         COST + "test_ctas_per_multiprocessor"),
        ("the last CTA of a wave is lost", "busiest = np.ceil(ctas / sm_count)", "busiest = np.floor(ctas / sm_count)",
         COST + "test_waves"),
        ("a wave more than there are", "np.ceil(busiest / resident) - 1.0", "np.ceil(busiest / resident)",
         COST + "test_waves"),
        ("waves are as long as their last", "before * np.maximum(of_wave, fill)", "before * np.maximum(of_last, fill)",
         COST + "test_waves"),
        ("a thread names any register", "sm.shared_memory_cta), kernels.registers / most)", "sm.shared_memory_cta), 0.0 / most)",
         TRAFFIC + "test_a_tile_may_take_all_the_registers_that_a_thread_can_name"),
        ("wide loads count as narrow ones", " - kernels.operand_a / WIDEST)", ")",
         TODAY + "test_each_narrow_load_takes_slots_of_its_own"),
        ("two thirds of the schedulers", "kernels.slots * rate / issue_lanes", "1.5 * kernels.slots * rate / issue_lanes",
         TODAY + "test_each_narrow_load_takes_slots_of_its_own"),
    ],
    "cost/sm.py": [
        ("single warps use the tensor cores in full", "share * alone * family)", "share * family)",
         TRAFFIC + "test_mma_of_single_warps_reaches_its_share_of_the_tensor_cores"),
        ("every tile starts anew", "np.where(kernels.persistent > 0,", "np.where(kernels.persistent > 1,",
         TODAY + "test_a_cta_that_goes_from_tile_to_tile_fills_the_start_of_the_next"),
        ("queries fewer than keys share their start", "np.where(kernels.m < kernels.k, 1.0, following)",
         "resident + 0.0 * kernels.m",
         COST + "test_no_cta_fills_the_prologue_of_one_that_loads_more_keys_than_it_has_queries"),
        ("a burst passes whole steps of short heads", "np.minimum(kernels.tile_k, kernels.k / kernels.split)", "kernels.tile_k",
         COST + "test_a_burst_passes_the_queries_of_every_part_and_no_more_keys_than_there_are"),
        ("attention finds its code in a loop", "np.where(attends | np.isinf(", "np.where(np.isinf(",
         COST + "test_the_code_of_attention_on_tensor_cores_comes_anew_also_in_a_loop_of_it"),
        ("every launch brings its code", "once * interval / kernels.repeat", "once * interval",
         TRAFFIC + "test_the_second_of_several_launches_finds_the_code_of_the_first"),
        ("reuse in registers speeds up shared memory",
         '1.0 + constants["gemm.kappa"] * loads',
         '1.0 - constants["gemm.kappa"] * loads',
         EQUATIONS + "test_a_thread_of_eight_by_eight_results_loads_a_quarter_as_often_as_it_multiplies"),
        ("CTAs beside do not hide a prologue", "lost = waiting / beside +", "lost = waiting +",
         EQUATIONS + "test_ctas_that_share_an_sm_hide_each_other_s_prologue"),
        ("softmax of another warp group takes longer",
         "np.hypot(products, softmax) - products, softmax",
         "softmax, np.hypot(products, softmax) - products",
         COST + "test_a_softmax_comes_after_the_products_or_beside_them"),
    ],
    "cost/traffic.py": [
        ("rows have copies in both parts of the L2", "cache if whole is None else whole", "cache",
         TRAFFIC + "test_rows_lie_once_in_an_l2_whose_parts_keep_copies_of_what_all_read"),

        ("partial results are written and not read", "2.0 * partial_bytes(kernels)", "partial_bytes(kernels)",
         EQUATIONS + "test_partial_results_pass_the_l2_twice"),
        ("the first read of A counts again", "(np.ceil(across_n / patch_n) - 1.0)", "np.ceil(across_n / patch_n)",
         COST + "test_patches_against_counting_tiles"),
        ("an operand of the whole cache stays", "RESIDENT_SHARE = 0.5", "RESIDENT_SHARE = 1.0",
         COST + "test_partial_results_that_fit_the_cache_stay_there"),
        ("k is cut short",
         "np.ceil(kernels.k / kernels.split / kernels.tile_k)",
         "np.floor(kernels.k / kernels.split / kernels.tile_k)",
         EQUATIONS + "test_each_part_of_a_split_is_padded_to_whole_steps_of_its_tile"),
        ("a cluster shares the shorter side",
         "np.minimum(from_a, from_b) + np.maximum(from_a, from_b) / kernels.cluster",
         "np.maximum(from_a, from_b) + np.minimum(from_a, from_b) / kernels.cluster",
         COST + "test_a_cluster_loads_the_longer_side_of_its_tiles_once"),
    ],
    "cost/cost.py": [
        ("the slowest option is chosen",
         "plan_time = np.minimum.reduceat(option_time",
         "plan_time = np.maximum.reduceat(option_time",
         COST + "test_the_fastest_variant_and_option_are_chosen"),
        ("launches are not repeated",
         "kernels.repeat * (cost.busy_s + cost.overhead_s)",
         "kernels.repeat * cost.busy_s + cost.overhead_s",
         EQUATIONS + "test_every_launch_of_a_repeated_kernel_has_its_overhead"),
        ("the smooth maximum is below the largest", "root *= peak", "root *= 0.9 * peak",
         COST + "test_the_smooth_maximum"),
    ],
    "cost/roofline.py": [
        ("a multiply-accumulate is one operation", "2.0 * self.units * self.device.pipe", "self.units * self.device.pipe",
         EQUATIONS + "test_the_roofline_counts_two_operations_for_each_multiply_accumulate"),
        ("a cache holds nothing",
         "np.maximum(0.0, self.kernels.read_bytes - cache)",
         "np.maximum(0.0, self.kernels.read_bytes + cache)",
         EQUATIONS + "test_the_roofline_counts_two_operations_for_each_multiply_accumulate"),
    ],
    "cost/blocking.py": [
        ("no way is left to the results", "(device.l1.ways - 1.0) * l1_way", "device.l1.ways * l1_way",
         COST + "test_the_blocks_of_a_product_fill_the_ways_of_each_level"),
        ("a block has the registers of its operands", "device.core.registers - OPERAND_REGISTERS",
         "device.core.registers + OPERAND_REGISTERS", COST + "test_the_register_block_of_each_instruction_set"),
        ("a sum does not wait for the one before it", "np.maximum(height * registers * lanes / rate, device.core.fma_latency)",
         "np.minimum(height * registers * lanes / rate, device.core.fma_latency)",
         CORES + "test_a_step_of_k_takes_each_block_its_multiply_adds_or_their_latency"),
        ("a single register is lost", "full_m * (full_v * of_pair + rest_v * of_single)", "full_m * full_v * of_pair",
         CORES + "test_a_step_of_k_takes_each_block_its_multiply_adds_or_their_latency"),
        ("the widest instructions of all are those of the core", "np.minimum(kernels.runtime.simd, device.core.simd)",
         "np.maximum(kernels.runtime.simd, device.core.simd)",
         CORES + "test_instructions_start_as_many_multiply_adds_as_they_name"),
    ],
    "cost/plan.py": [
        ("time between launches has no bound",
         "{**split, LAUNCH: self.summed(ran.overhead_s)}",
         "{**split, LAUNCH: self.summed(0.0 * ran.overhead_s)}",
         EQUATIONS + "test_every_launch_of_a_repeated_kernel_has_its_overhead"),
    ],
    "cost/bounds.py": [
        ("a lower clock leaves the L2 as it is",
         'Bound(name="l2", colour="#e69f00", side="cache-bound", clocked=True',
         'Bound(name="l2", colour="#e69f00", side="cache-bound", clocked=False',
         EQUATIONS + "test_bounds_that_are_called_clocked_are_inverse_to_the_clock_and_the_others_do_not_move"),
    ],
    "cost/power.py": [
        ("bounds shrink with a lower clock", "bound / ratio if clocked(name)", "bound * ratio if clocked(name)",
         COST + "test_a_limit_lowers_the_clock_until_the_power_is_met"),
        ("the clock lies above the limit", "np.where(lowest, low, np.exp(left))", "np.where(lowest, low, np.exp(right) * 1.01)",
         COST + "test_a_limit_lowers_the_clock_until_the_power_is_met"),
    ],
    "cost/cpu_traffic.py": [
        ("results are written without being read",
         "fresh = np.where(kept, 0.0, operands + 2.0 * kernels.c_bytes",
         "fresh = np.where(kept, 0.0, operands + kernels.c_bytes",
         EQUATIONS + "test_a_written_line_is_read_first_and_parameters_always_come_from_memory"),
        ("the share of two sockets crosses twice", "cached * (used - 1.0) / used", "cached * used / used",
         COST + "test_half_of_what_two_sockets_read_crosses_their_link"),
        ("further sweeps come from the cache", "* (sweeps_of(kernels, device, workers) - 1.0)", "* 0.0",
         CORES + "test_further_sweeps_read_from_memory_what_the_cache_does_not_hold"),
        ("cores draw more than the memory gives", "np.minimum(workers * core_bandwidth", "np.maximum(workers * core_bandwidth",
         COST + "test_one_core_draws_what_its_miss_buffers_allow"),
    ],
    "cost/cores.py": [
        ("SIMD instructions of a loop are free", '* overlap + kernels.counts["vectors"] / rate', "* overlap",
         CORES + "test_simd_instructions_of_a_loop_start_as_multiply_adds_do"),
        ("two cores are as fast as one", "1.0 - (awake - 1.0) /", "1.0 - (awake - 2.0) /",
         COST + "test_the_clock_falls_from_the_turbo_of_one_core_to_that_of_a_full_socket"),
        ("the arithmetic of a loop is free", "kernels.flop / per_clock)", "0.0 / per_clock)",
         COST + "test_a_loop_costs_its_clocks_or_its_arithmetic"),
    ],
    "cost/team.py": [
        ("all threads end together", "constants[\"cpu.straggle\"] * np.log2(workers)", "0.0",
         CORES + "test_the_last_of_many_threads_is_late"),
        ("threads without a piece stay away",
         "(kernels.runtime.fork_cache_lines > 0) & (kernels.runtime.spin",
         "(kernels.runtime.fork_cache_lines > 1e9) & (kernels.runtime.spin",
         CORES + "test_all_threads_of_openmp_join_a_loop_of_fewer_pieces_and_none_a_serial_one"),
        ("one side of a strip is lost", "np.minimum(strip / kernels.n, 1.0)", "np.minimum(strip / kernels.m, 1.0)",
         COST + "test_the_busiest_core_gets_whole_blocks_or_strips"),
        ("hyper-threads double every rate", "np.maximum(1.0 / siblings", "np.minimum(1.0 / siblings",
         CORES + "test_hyper_threads_hide_waiting_and_issue_no_faster"),
        ("one core forks itself", "np.where(team > 1, counter", "np.where(team > 0, counter",
         CORES + "test_two_threads_wait_once_for_each_panel_and_one_never"),
    ],
    "cost/switched.py": [
        ("memory modules stand on every package", 'and memory_family(device) == "DDR"', "",
         PACKAGE + "test_memory_modules_are_inside_a_board_and_a_module_alone"),
        ("voltage falls below the least", "np.maximum(floor, 1.0 -", "np.minimum(floor, 1.0 -",
         COST + "test_voltage_falls_with_the_clock_to_a_floor"),
        ("voltage rises with a lower clock", "1.0 - slope * (1.0 - clock", "1.0 + slope * (1.0 - clock",
         COST + "test_voltage_falls_with_the_clock_to_a_floor"),
        ("an architecture has the line of all others", "if slope is None else slope", "if slope else slope",
         POWER + "test_the_voltage_is_that_of_the_architecture_where_it_is_known"),
        ("energy goes with the voltage", 'constants["energy.clock"]) * volt**2', 'constants["energy.clock"]) * volt',
         EQUATIONS + "test_energy_of_operations_bytes_and_clocks_goes_with_the_square_of_the_voltage"),
        ("all lanes of an SM clock as one",
         'constants["energy.clock"] * lanes * volt**2',
         'constants["energy.clock"] * volt**2',
         EQUATIONS + "test_a_gpu_splits_the_energy_of_its_node_between_a_clock_of_a_lane_and_a_multiplication"),
        ("all architectures of a node are one", "node if own is None else node * own", "node",
         POWER + "test_an_architecture_that_is_known_to_take_more_does_so_in_its_operations_only"),
    ],
    "cost/idle.py": [
        ("leakage goes with V^2", "(volt / top_volt) ** 3", "(volt / top_volt) ** 2",
         POWER + "test_leakage_is_a_share_of_the_idle_power_that_grows_with_the_cube_of_the_voltage"),
        ("idle clocks go with f V", "clock / top * (volt / top_volt) ** 2", "clock / top * (volt / top_volt)",
         POWER + "test_clocks_take_their_share_of_the_idle_power_at_the_highest_clock_of_the_product"),
        ("a slower memory takes more", "* (1.0 - memory)", "* (1.0 + memory)",
         POWER + "test_a_slower_memory_takes_its_share_off_what_stands"),
        ("all sockets are awake with one core", "np.ceil(awake / per)", "device.core.sockets + 0.0 * awake",
         PACKAGE + "test_the_second_socket_wakes_with_its_first_core"),
        ("the uncore has a turbo", "np.minimum(clock, device.clock.all_core)", "np.maximum(clock, device.clock.all_core)",
         PACKAGE + "test_while_the_framework_runs_one_core_is_awake"),
        ("cores leak with V^2", "operation * top * volt**3", "operation * top * volt**2",
         PACKAGE + "test_each_part_of_a_package_has_its_own_quantity"),
    ],
    "cost/energy.py": [
        ("cores sleep before and after their loop", "self.units * self.busy_s + self.held * self.overhead_s",
         "self.units * self.busy_s", PACKAGE + "test_each_part_of_a_package_has_its_own_quantity"),
        ("the cache takes energy for what comes from memory", "self.llc_bytes * cache_energy", "self.dram_bytes * cache_energy",
         EQUATIONS + "test_each_component_has_its_own_quantity"),
        ("a limit cuts what is below it", "np.where(self.dynamic_j > left", "np.where(self.dynamic_j < left",
         COST + "test_energy_grows_with_work_and_stops_at_the_limit"),
        ("instructions take no energy", "return self.issues * issue", "return 0.0 * issue",
         EQUATIONS + "test_each_component_has_its_own_quantity"),
        ("leakage flows in busy time only",
         "leakage_power(self.device, self.volt, self.constants) * self.took",
         "leakage_power(self.device, self.volt, self.constants) * self.busy_s",
         EQUATIONS + "test_each_component_has_its_own_quantity"),
        ("clocks stop in gaps",
         "self.core_clock, self.volt, self.constants) * self.took", "self.core_clock, self.volt, self.constants) * self.busy_s",
         EQUATIONS + "test_each_component_has_its_own_quantity"),
    ],
    "lower/kernel.py": [
        ("the widest tile holds a head", "width = min((tile.n", "width = max((tile.n",
         MENUS + "test_a_cta_of_attention_holds_whole_heads_in_the_narrowest_tile_that_does"),
    ],
    "lower/gemm.py": [
        ("rows begin where they like", "return gcd(VECTOR, *(", "return max(VECTOR, *(",
         TODAY + "test_rows_that_begin_at_no_multiple_of_16_bytes_are_loaded_in_narrower_pieces"),
        ("thin products of nine rows", "(THIN if gpu", "(THIN + 1 if gpu",
         MENUS + "test_products_of_one_row_run_by_values_on_tensor_cores_and_of_up_to_eight_on_lanes"),
        ("a product has one operation for each multiplication", "flop = 2.0 * m * n * k * count", "flop = m * n * k * count",
         LOWER + "test_fully_connected_sizes_in_each_phase"),
        ("the gradient of the data sums over rows",
         '"backward_data": (inner, rows, features)',
         '"backward_data": (inner, features, rows)',
         LOWER + "test_fully_connected_sizes_in_each_phase"),
        ("one step of a sequence is multiplied", "rows, gates = steps * batch", "rows, gates = batch",
         LOWER + "test_a_step_multiplies_once_for_each_gate"),
        ("the state has no gates", "(gates, batch, hidden) if forward", "(hidden, batch, hidden) if forward",
         LOWER + "test_a_step_multiplies_once_for_each_gate"),
    ],
    "lower/layer.py": [
        ("a strided data gradient counts results",
         "return self.ci, self.batch * self.h * self.w, self.co * self.taps",
         "return self.ci, self.batch * self.ho * self.wo, self.co * self.taps",
         LOWER + "test_implicit_product_sizes_in_each_phase"),
        ("grouped filters count once",
         "float(self.groups * self.co * self.ci * self.taps * self.element)",
         "float(self.co * self.ci * self.taps * self.element)",
         LOWER + "test_groups_run_one_after_the_other_or_as_one_batch"),
    ],
    "lower/conv_products.py": [
        ("few channels are padded as many", "few if layer.ci <= few else ", "",
         LOWER + "test_few_input_channels_are_padded_to_a_word"),
        ("images channels first are one product", "first = context.stack.conv.layout_copies != \"none\"", "first = False",
         TODAY + "test_filters_of_one_pixel_are_products_in_either_layout"),
        ("channels are cut to whole loads", "else ceil(layer.ci / whole) * whole", "else layer.ci",
         LOWER + "test_tensor_cores_pad_channels_to_whole_loads_and_multiply_no_zeros"),
        ("a column matrix per batch takes one image",
         "column = float(layer.groups * layer.ci * layer.taps * width * layer.element)",
         "column = float(layer.groups * layer.ci * layer.taps * layer.ho * layer.wo * layer.element)",
         LOWER + "test_unfolding_the_whole_batch_takes_the_columns_of_all_images"),
        ("a window has no halo", "((rows - 1) * sh + layer.kh)", "((rows - 1) * sh)",
         LOWER + "test_taps_share_the_pixels_of_a_tile"),
    ],
    "lower/attention.py": [
        ("a window ends within a step", "kind.window + block)", "kind.window)",
         MENUS + "test_a_tile_of_queries_under_a_window_goes_through_whole_steps_of_keys"),
        ("a causal mask keeps all blocks", "0.5 * cut", "cut",
         LOWER + "test_a_causal_mask_leaves_half_of_the_pairs_and_the_blocks_on_the_diagonal"),
        ("the scores are no product", "work=2.0 * times * share", "work=times * share",
         LOWER + "test_a_tile_of_queries_meets_all_keys_of_its_head"),
    ],
    "lower/pointwise.py": [
        ("a lane goes through the whole row", "row / cta * rows.value_slots", "row * rows.value_slots",
         TODAY + "test_a_lane_alone_has_its_part_of_a_row"),
        ("what is written is read as well", "max(moved - written, min(reads, moved))", "max(moved, min(reads, moved))",
         LOWER + "test_streams_move_what_the_stack_says"),
        ("master copies are halves", "size = float(KEPT_BYTES * prod", "size = float(0.5 * KEPT_BYTES * prod",
         LOWER + "test_an_optimiser_reads_and_writes_master_copies_in_single_precision"),
    ],
    "lower/processor.py": [
        ("small products use all threads", "<= stack.max_serial_product", ">= stack.max_serial_product",
         PROCESSOR + "test_a_small_product_stays_on_one_thread"),
        ("one thread may copy a part of a tile", "tiled=kernel.c_bytes if", "tiled=0.0 * kernel.c_bytes if",
         MOBILE + "test_images_are_unfolded_in_tiles_of_one_thread"),
    ],
    "lower/conv_transforms.py": [
        ("Winograd takes any stride", "layer.sh == layer.sw == 1 and layer.dense", "layer.dense",
         LOWER + "test_winograd_is_for_three_by_three_with_stride_one"),
        ("Winograd multiplies for each result", "return (results + filters - 1) ** 2", "return (results + filters) ** 2",
         LOWER + "test_multiplications_of_winograd"),
        ("complex products are real", "name, frequencies(tile), 4, sizes", "name, frequencies(tile), 1, sizes",
         LOWER + "test_multiplications_of_the_frequency_domain"),
    ],
    "lower/context.py": [
        ("items of the smaller tensor",
         "max(1.0, max(reads + weights, writes) / element)",
         "max(1.0, min(reads + weights, writes) / element)",
         LOWER + "test_an_element_wise_kernel_has_an_item_for_each_value_of_its_larger_side"),
    ],
    "schedule/timeline.py": [
        ("an op waits for its own end", "issued - (worked - spent)", "issued - worked",
         SERIAL + "test_a_gpu_stream_against_a_loop"),
        ("a CPU overlaps framework and kernels",
         "np.cumsum(device + host, axis=-1)",
         "np.cumsum(np.maximum(device, host), axis=-1)",
         SERIAL + "test_a_cpu_against_a_loop"),
        ("the first op takes no time", "found[..., 1:] -= ends[..., :-1]", "found -= ends[..., :1]",
         SERIAL + "test_a_gpu_stream_against_a_loop"),
    ],
    "schedule/events.py": [
        ("a resource gives what it has not", "left[resource] - step * weight)", "left[resource] - step)",
         EVENTS + "test_equal_flows_that_start_together_end_together"),
        ("slots beyond the free ones are given", "phase.slots if phase.slots < free else free", "phase.slots",
         EVENTS + "test_slots_go_to_whoever_came_first"),
        ("rates pass the capacity", "if weight * rate > self._capacity", "if weight * rate < self._capacity",
         EVENTS + "test_equal_flows_that_start_together_end_together"),
    ],
    "schedule/streams.py": [
        ("an op starts before what it needs", "max(free[stream], ready)", "min(free[stream], ready)",
         "archsim/schedule/streams.py::archsim.schedule.streams.assign"),
        ("the launch queue has a place more", "self._queued >= self.queue", "self._queued > self.queue",
         STREAMS + "test_the_host_blocks_as_soon_as_every_place_is_taken"),
    ],
    "schedule/collective.py": [
        ("a ring goes round once", "steps = 2 * (devices - 1)", "steps = devices - 1",
         TRAINING + "test_a_ring_moves_twice_the_bytes_less_one_part_and_pays_for_each_step"),
        ("a ring has a step for each device", "steps = 2 * (devices - 1)", "steps = 2 * devices",
         TRAINING + "test_a_ring_moves_twice_the_bytes_less_one_part_and_pays_for_each_step"),
    ],
    "schedule/training.py": [
        ("a bucket may be one value too large", "size >= bucket_bytes or i + 1", "size > bucket_bytes or i + 1",
         TRAINING + "test_gradients_fill_buckets_in_the_order_in_which_they_are_computed"),
        ("the server sums one pass less", "(devices + step.server_passes) * size", "devices * size",
         TRAINING + "test_a_parameter_server_takes_every_device_s_bytes_over_its_link"),
        ("gradients wait for the update",
         "if time > done:\n                        yield env.timeout(time - done)",
         "if time < done:\n                        yield env.timeout(done - time)",
         TRAINING + "test_gradients_are_exchanged_while_others_are_computed"),
    ],
    "schedule/waves.py": [
        ("tails are full waves", "np.floor(np.ceil(ctas / count) / resident)", "np.ceil(np.ceil(ctas / count) / resident)",
         EQUATIONS + "test_full_waves_and_the_tail_hold_the_slots_of_their_ctas"),
    ],
    "schedule/serving.py": [
        ("a batch takes one request less",
         "len(queue) < batching.most and env.now < ready",
         "len(queue) < batching.most - 1 and env.now < ready",
         SERVING + "test_a_batch_starts_when_it_is_full_or_its_oldest_has_waited_long_enough"),
        ("utilisation counts one device", "(self.devices * self.span_s)", "self.span_s",
         SERVING + "test_two_devices_that_run_all_the_time_are_used_fully_and_one_that_waits_half"),
    ],
    "lower/fusion.py": [
        ("a grid finds the largest value with no update", "updates=ctas", "updates=0.0",
         ROUNDING + "test_a_grid_finds_the_largest_value_whatever_there_is_to_look_at"),
        ("a kernel that finds the largest value writes, too", "writes if i == last else 0.0", "writes",
         ROUNDING + "test_of_two_kernels_the_first_finds_the_largest_value_in_one_place"),
    ],
}  # fmt: skip

FAULTS = tuple(
    Fault(name=name, file=f"archsim/{file}", right=right, wrong=wrong, caught_by=test)
    for file, rows in ROWS.items() for name, right, wrong, test in rows
)  # fmt: skip
