# Blocks a write whose content holds something like a cloud access key.
if grep -q 'AKIA[0-9A-Z]\{16\}'; then
    echo "the content holds an access key; read it from the environment instead" >&2
    exit 2
fi
