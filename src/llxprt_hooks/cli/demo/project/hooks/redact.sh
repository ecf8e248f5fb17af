# Removes email addresses from answers.
answer=$(sed -n 's/.*"llm_response":{"text":"\([^"]*\)".*/\1/p')
case $answer in
    *@*)
        redacted=$(printf '%s' "$answer" | sed 's/[[:alnum:].]*@[[:alnum:].]*[[:alnum:]]/[redacted]/g')
        printf '{"hookSpecificOutput": {"llm_response": {"text": "%s"}}}' "$redacted"
        ;;
esac
