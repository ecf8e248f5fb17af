"""Requests and responses of the JSON APIs with as much as possible that hooks do not see."""

from __future__ import annotations

from typing import Any

from llxprt_hooks.testing import Sample

PICTURE = "data:image/png;base64,AA=="


def responses_request() -> dict[str, Any]:
    """A request to the Responses API with every kind of item."""
    return {
        "model": "gpt-5",
        "instructions": "Be careful.",
        "input": [
            {"role": "developer", "content": "Be kind."},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look: "},
                    {"type": "input_image", "image_url": PICTURE, "detail": "auto"},
                    {"type": "input_text", "text": "at this."},
                ],
            },
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed-1"},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Reading.", "annotations": [{"url": "http://a"}]}],
            },
            {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "I see."}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call-1", "name": "read_file", "arguments": '{"n": 1}'},
            {"type": "function_call", "id": "fc_2", "call_id": "call-2", "name": "read_file", "arguments": '{"n": 2}'},
            {"type": "function_call_output", "call_id": "call-1", "output": "the first result"},
            {
                "type": "function_call_output",
                "call_id": "call-2",
                "output": [{"type": "input_text", "text": "the second result"}],
            },
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "weather"}},
            {"type": "mcp_approval_request", "id": "mcpr_1", "name": "drop", "arguments": "{}", "server_label": "db"},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False},
            {"type": "local_shell_call", "id": "lsh_1", "call_id": "call-3", "action": {"command": ["ls"]}},
            {"type": "local_shell_call_output", "id": "call-3", "output": "the third result"},
            {"id": "item_9"},
            {
                "type": "message",
                "id": "msg_2",
                "role": "assistant",
                "content": [{"type": "refusal", "refusal": "Not that."}, {"type": "output_text", "text": "Done."}],
            },
            {"role": "system", "content": "A note."},
            {"role": "user", "content": "Thanks."},
        ],
        "tools": [
            {"type": "function", "name": "read_file", "parameters": {}},
            {"type": "custom", "name": "write_file"},
            {"type": "web_search", "search_context_size": "low"},
            {"type": "mcp", "server_label": "db", "server_url": "http://db"},
        ],
        "tool_choice": "auto",
        "temperature": 0.5,
        "metadata": {"user": "u-1"},
        "store": False,
    }


def responses_response() -> dict[str, Any]:
    """A response of the Responses API."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1.0,
        "model": "gpt-5-2026",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "output": [
            {
                "id": "rs_9",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "I wonder."}],
                "encrypted_content": "sealed-9",
            },
            {
                "id": "msg_9",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {
                        "type": "output_text",
                        "text": "Here it is.",
                        "annotations": [
                            {"type": "url_citation", "url": "http://a", "title": "A", "start_index": 0, "end_index": 4}
                        ],
                        "logprobs": [],
                    },
                    {"type": "refusal", "refusal": "Not that."},
                ],
            },
            {
                "id": "fc_9",
                "type": "function_call",
                "call_id": "call-9",
                "name": "read_file",
                "arguments": '{"file_path": "a"}',
                "status": "completed",
            },
            {"id": "ctc_9", "type": "custom_tool_call", "call_id": "call-8", "name": "write_file", "input": "grammar"},
            {
                "id": "ws_9",
                "type": "web_search_call",
                "status": "completed",
                "action": {"type": "search", "query": "x"},
            },
        ],
        "usage": {
            "input_tokens": 3,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 1},
            "total_tokens": 7,
        },
    }


def responses_samples() -> list[Any]:
    request, response = responses_request(), responses_response()
    hidden = ["Be careful.", "Be kind.", PICTURE, "call-1", "call-2", "call-3", '{"n": 1}', "u-1", "rs_2", "I see."]
    hidden += ["the first result", "the second result", "the third result", "weather", "mcpr_1", "item_9", "Not that."]
    attached = ["reasoning", "rs_1", "sealed-1", "msg_1", "http://a"]
    return [
        Sample(request, response, hidden, attached),
        Sample({**request, "tool_choice": {"type": "function", "name": "read_file"}}, response, hidden, attached),
        Sample({**request, "tool_choice": {"type": "mcp", "server_label": "db"}}, response, hidden, attached),
        {"model": "gpt-5", "input": "Hello", "max_output_tokens": 5},
        {"model": "gpt-5", "input": [], "previous_response_id": "resp_0"},
        {"model": "gpt-5", "conversation": "conv_1"},
    ]


def anthropic_request() -> dict[str, Any]:
    """A request to the Messages API with every kind of block."""
    mark = {"type": "ephemeral", "ttl": "1h"}
    return {
        "model": "claude-opus-4-1",
        "max_tokens": 1000,
        "system": [{"type": "text", "text": "Be careful.", "cache_control": mark}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look: "},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
                    {
                        "type": "document",
                        "source": {"type": "text", "data": "a file"},
                        "title": "T",
                        "cache_control": mark,
                    },
                    {"type": "text", "text": "at this."},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "I see.", "signature": "signed-1"},
                    {"type": "redacted_thinking", "data": "sealed-1"},
                    {"type": "text", "text": "Reading."},
                    {"type": "tool_use", "id": "call-1", "name": "read_file", "input": {"n": 1}},
                    {"type": "tool_use", "id": "call-2", "name": "read_file", "input": {"n": 2}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call-1", "content": "the first result"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "call-2",
                        "is_error": True,
                        "content": [{"type": "text", "text": "the second result"}],
                    },
                    {"type": "text", "text": "Go on."},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "srv-1", "name": "web_search", "input": {"query": "weather"}},
                    {"type": "web_search_tool_result", "tool_use_id": "srv-1", "content": [{"url": "http://b"}]},
                    {"type": "text", "text": "It rains. ", "citations": [{"cited_text": "rain", "url": "http://b"}]},
                    {"type": "text", "text": "Take care."},
                ],
            },
            {"role": "user", "content": "And tomorrow?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "signed-2"},
                    {"type": "text", "text": "Sun."},
                ],
            },
            {"role": "user", "content": "Thanks."},
        ],
        "tools": [
            {"name": "read_file", "input_schema": {"type": "object"}},
            {"name": "write_file", "input_schema": {"type": "object"}, "cache_control": mark},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "temperature": 0.5,
        "metadata": {"user_id": "u-1"},
    }


def anthropic_response() -> dict[str, Any]:
    """A response of the Messages API."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-2026",
        "content": [
            {"type": "thinking", "thinking": "I wonder.", "signature": "signed-9"},
            {"type": "redacted_thinking", "data": "sealed-9"},
            {
                "type": "text",
                "text": "Here it is.",
                "citations": [
                    {
                        "type": "char_location",
                        "cited_text": "it is",
                        "document_index": 0,
                        "document_title": "T",
                        "file_id": None,
                        "start_char_index": 0,
                        "end_char_index": 5,
                    }
                ],
            },
            {"type": "text", "text": " Look.", "citations": None},
            {"type": "server_tool_use", "id": "srv-9", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "srv-9", "content": []},
            {
                "type": "tool_use",
                "id": "call-9",
                "name": "read_file",
                "input": {"file_path": "ä", "deep": [1, {"b": None}]},
            },
            {"type": "tool_use", "id": "call-8", "name": "noop", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 2},
    }


def anthropic_samples() -> list[Any]:
    request, response = anthropic_request(), anthropic_response()
    hidden = ["Be careful.", "AA==", "a file", "I see.", "signed-1", "sealed-1", "call-1", "call-2", "the first result"]
    hidden += ["the second result", "srv-1", "weather", "http://b", "u-1", "1h"]
    attached = ["thinking", "Hm.", "signed-2", "rain"]
    forced = {"type": "tool", "name": "write_file"}
    sparse = {name: value for name, value in request.items() if name not in ("temperature", "tool_choice")}
    return [
        Sample(request, response, hidden, attached),
        Sample({**request, "tool_choice": forced}, response, hidden, attached),
        Sample(sparse, response, hidden, attached),
        {"model": "claude", "max_tokens": 5, "messages": [{"role": "user", "content": "Hello"}]},
    ]


def chat_response() -> dict[str, Any]:
    """A response of Chat Completions with two choices."""
    function = {"name": "read_file", "arguments": '{"file_path": "a"}'}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5-2026",
        "system_fingerprint": "fp",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Here it is.",
                    "refusal": None,
                    "reasoning_content": "I wonder.",
                    "tool_calls": [
                        {"id": "call-1", "type": "function", "function": function},
                        {"id": "call-2", "type": "function", "function": {"name": "noop", "arguments": "{}"}},
                    ],
                },
                "finish_reason": "tool_calls",
                "logprobs": None,
            },
            {
                "index": 1,
                "message": {"role": "assistant", "content": None, "refusal": "Not that."},
                "finish_reason": "stop",
                "logprobs": None,
            },
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }
