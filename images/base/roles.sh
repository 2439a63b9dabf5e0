# shellcheck shell=sh
# What every role reads from its environment (images/CONTRACT.md); sourced. Wrong environments end with code 2.

# A setting that has to be there: need NAME
need() {
	eval "value=\${$1:-}"
	if [ -z "${value:-}" ]; then
		echo "$1: found nothing; the role ${SCPSLAB_ROLE:-} expects it. Set it with docker run --env $1=…" >&2
		exit 2
	fi
}

# A setting that is a whole number: whole NAME
whole() {
	need "$1"
	case $value in
	*[!0-9]*)
		echo "$1: found \"$value\"; expected a whole number" >&2
		exit 2
		;;
	esac
}

: "${SCPSLAB_PORT:=5001}" "${SCPSLAB_BYTES:=4000000}" "${SCPSLAB_SEED:=1}" "${SCPSLAB_PATIENCE_S:=3600}"
whole SCPSLAB_PORT
whole SCPSLAB_BYTES
whole SCPSLAB_SEED
whole SCPSLAB_PATIENCE_S
