# Blocks a write that contains something like a cloud access key.
if grep -q 'AKIA[0-9A-Z]\{16\}'; then
    echo "access keys do not belong in files" >&2
    exit 2
fi
