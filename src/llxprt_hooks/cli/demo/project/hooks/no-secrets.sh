# Blocks a write that contains something like a cloud access key.
if grep -q 'AKIA[0-9A-Z]\{16\}'; then
    echo "the content contains an access key; read it from the environment instead" >&2
    exit 2
fi
