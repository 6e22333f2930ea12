#!/usr/bin/env bash
# Decode everything that the card and the leaderboard of `tiny` show, on one GPU, and write both.
#
#   studies/measure.sh OUT [PART...]      parts: suite board fresh pages; all of them by default
#
# suite   the main presets on seed 0, timed by itself
# board   every preset on both seeds; what the suite decoded is not decoded again
# fresh   the samplers that claims are about on problems of a new draw, both seeds
# pages   store the results, and write card, leaderboard and figures from them
#
# A part that was interrupted resumes. UNCODE, PYTHON, WORKERS, BATCH and DRAW may be set. Processes share the GPU better
# under NVIDIA's MPS, which is started if it is there; MPS=no leaves it alone.
set -euo pipefail
out=$(realpath -m "${1:?usage: studies/measure.sh OUT [PART...]}")
cd "$(dirname "$0")/.."
shift
unset PYTHONDONTWRITEBYTECODE # without bytecode every process would compile torch's modules again, for ten seconds
parts=${*:-suite board fresh pages}
uncode=${UNCODE:-uncode}
python=${PYTHON:-python3}
draw=${DRAW:-90125}
second=studies/tiny-seed-1
options="--device cuda --workers ${WORKERS:-12} --batch ${BATCH:-256}"
claims=certain_first,certain_first_fast,left_to_right,semi_ar,"semi_ar 16",remdm,confidence,entropy,eb,uncode_eb,certainty_density,info_gain
claims+=,fast_dllm,"fast_dllm prefix","uncode 0","uncode 0.02","uncode 0.05","uncode 0.1","uncode 0.25","uncode 0.5","uncode 1"

if [ "${MPS:-yes}" != no ] && command -v nvidia-cuda-mps-control >/dev/null && nvidia-cuda-mps-control -d 2>/dev/null; then
	trap 'echo quit | nvidia-cuda-mps-control' EXIT
fi

for part in $parts; do
	began=$SECONDS
	case $part in
	suite) $uncode mini $options --out "$out/board" ;;
	board) $uncode mini --all --second $second $options --out "$out/board" ;;
	fresh) $uncode mini --all --second $second --samplers "$claims" --draw "$draw" $options --out "$out/fresh" ;;
	pages)
		for of in board board/second fresh fresh/second; do
			[ -f "$out/$of/results.json" ] || { echo "measure.sh: '$out/$of' has no results: run the parts before." >&2; exit 2; }
		done
		cp "$out/board/results.json" studies/results/seed-0.json
		cp "$out/board/second/results.json" studies/results/seed-1.json
		cp "$out/fresh/results.json" studies/results/fresh-seed-0.json
		cp "$out/fresh/second/results.json" studies/results/fresh-seed-1.json
		$python -m studies.card
		$python -m studies.leaderboard
		;;
	*)
		echo "measure.sh: there is no part '$part': give suite, board, fresh or pages." >&2
		exit 2
		;;
	esac
	echo "$part: $((SECONDS - began)) s"
done
