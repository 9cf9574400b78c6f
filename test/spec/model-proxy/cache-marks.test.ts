import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CALLERS, expectError } from "../../harness/callers.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type ProxyApp, startProxy } from "../../harness/proxy-app.ts";

const { path, request } = CALLERS["chat-completions"];
const cache_control = { type: "ephemeral" };
const hour = { type: "ephemeral", ttl: "1h" };
const hello = { role: "user", content: "hello" };
const lookUp = { id: "call_1", type: "function", function: { name: "look_up", arguments: "{}" } };
const used = { type: "tool_use", id: "call_1", name: "look_up", input: {} };

describe("cache_control of a Chat Completions request, toward Messages (open points 2: what has a counterpart is converted)", () => {
  let upstream: FakeUpstream;
  let proxy: ProxyApp;

  beforeAll(async () => {
    upstream = await startFakeUpstream();
    proxy = await startProxy({ host: "fetch", providers: [{ protocol: "messages", upstream }] });
  });
  beforeEach(() => upstream.reset());
  afterAll(async () => {
    await proxy.close();
    await upstream.close();
  });

  async function send(more: object): Promise<{ sent: Record<string, unknown>; dropped: string | undefined }> {
    const reply = await proxy.post(path, request("hello", more));
    expect(reply.status).toBe(200);
    return {
      sent: JSON.parse(await (await upstream.request()).text()) as Record<string, unknown>,
      dropped: reply.headers["x-portico-dropped"],
    };
  }

  it.each<[string, object, object]>([
    ["at the top", { cache_control: hour }, { cache_control: hour }],
    [
      "on a user's text, which then stays a block",
      { messages: [{ role: "user", content: [{ type: "text", text: "hello", cache_control }] }] },
      { messages: [{ role: "user", content: [{ type: "text", text: "hello", cache_control }] }] },
    ],
    [
      "on an image and a file",
      {
        messages: [
          {
            role: "user",
            content: [
              { type: "image_url", image_url: { url: "https://images.example/a.png" }, cache_control },
              { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" }, cache_control: hour },
            ],
          },
        ],
      },
      {
        messages: [
          {
            role: "user",
            content: [
              { type: "image", source: { type: "url", url: "https://images.example/a.png" }, cache_control },
              {
                type: "document",
                title: "a.pdf",
                source: { type: "base64", media_type: "application/pdf", data: "AA==" },
                cache_control: hour,
              },
            ],
          },
        ],
      },
    ],
    [
      "on instructions at the head",
      {
        messages: [
          {
            role: "system",
            content: [
              { type: "text", text: "be brief" },
              { type: "text", text: "be kind", cache_control },
            ],
          },
          hello,
        ],
      },
      {
        system: [
          { type: "text", text: "be brief" },
          { type: "text", text: "be kind", cache_control },
        ],
      },
    ],
    [
      "on one instruction, which then stays a block",
      { messages: [{ role: "system", content: [{ type: "text", text: "be brief", cache_control }] }, hello] },
      { system: [{ type: "text", text: "be brief", cache_control }] },
    ],
    [
      "on a later instruction",
      { messages: [hello, { role: "developer", content: [{ type: "text", text: "be brief", cache_control }] }] },
      {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "hello" },
              { type: "text", text: "<system>\nbe brief\n</system>", cache_control },
            ],
          },
        ],
      },
    ],
    [
      "on what the assistant said and called, and on a part of a tool's result, where it marks the whole",
      {
        messages: [
          hello,
          {
            role: "assistant",
            content: [{ type: "text", text: "hm", cache_control }],
            tool_calls: [{ ...lookUp, cache_control: hour }],
          },
          { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: "found", cache_control }] },
        ],
      },
      {
        messages: [
          hello,
          {
            role: "assistant",
            content: [
              { type: "text", text: "hm", cache_control },
              { ...used, cache_control: hour },
            ],
          },
          {
            role: "user",
            content: [{ type: "tool_result", tool_use_id: "call_1", content: [{ type: "text", text: "found" }], cache_control }],
          },
        ],
      },
    ],
    [
      "on whole messages, where it marks their last block",
      {
        messages: [
          { role: "system", content: "be brief", cache_control },
          { ...hello, cache_control },
          { role: "assistant", content: "hm", tool_calls: [lookUp], cache_control },
          { role: "tool", tool_call_id: "call_1", content: "found", cache_control },
        ],
      },
      {
        system: [{ type: "text", text: "be brief", cache_control }],
        messages: [
          { role: "user", content: [{ type: "text", text: "hello", cache_control }] },
          {
            role: "assistant",
            content: [
              { type: "text", text: "hm" },
              { ...used, cache_control },
            ],
          },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "found", cache_control }] },
        ],
      },
    ],
    [
      "on a message and on its last block, whose own is stronger",
      {
        messages: [
          { role: "user", content: [{ type: "text", text: "hello", cache_control: hour }], cache_control },
          { role: "assistant", content: null, tool_calls: [lookUp] },
          {
            role: "tool",
            tool_call_id: "call_1",
            content: [{ type: "text", text: "found", cache_control: hour }],
            cache_control,
          },
        ],
      },
      {
        messages: [
          { role: "user", content: [{ type: "text", text: "hello", cache_control: hour }] },
          { role: "assistant", content: [used] },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "call_1", content: [{ type: "text", text: "found" }], cache_control: hour },
            ],
          },
        ],
      },
    ],
    [
      "on a turn that is to be continued, whose end is trimmed",
      { messages: [hello, { role: "assistant", content: [{ type: "text", text: "once ", cache_control }] }] },
      { messages: [hello, { role: "assistant", content: [{ type: "text", text: "once", cache_control }] }] },
    ],
    [
      "on a tool, beside its function or inside it",
      {
        tools: [
          { type: "function", function: { name: "a" }, cache_control },
          { type: "function", function: { name: "b", cache_control: hour } },
        ],
      },
      {
        tools: [
          expect.objectContaining({ name: "a", cache_control }),
          expect.objectContaining({ name: "b", cache_control: hour }),
        ],
      },
    ],
    ["on a legacy function", { functions: [{ name: "a", cache_control }] }, { tools: [{ name: "a", cache_control }] }],
  ])("goes along %s", async (_name, more, expected) => {
    const { sent, dropped } = await send(more);
    expect(sent).toMatchObject(expected);
    // Strictly, where all is written out: nothing else may carry a mark.
    if ("messages" in expected) expect(sent["messages"]).toEqual(expected.messages);
    expect(dropped).toBeUndefined();
  });

  it.each<[string, object]>([
    ["an empty text", { messages: [{ role: "user", content: [{ type: "text", text: " ", cache_control }] }, hello] }],
    [
      "thinking alone",
      {
        messages: [
          hello,
          { role: "assistant", reasoning_details: [{ type: "reasoning.encrypted", data: "blob" }], cache_control },
          hello,
        ],
      },
    ],
  ])("is dropped and named on %s, which Messages lets nobody mark", async (_name, more) => {
    const { sent, dropped } = await send(more);
    expect(JSON.stringify(sent)).not.toContain("cache_control");
    expect(dropped).toBe("cache_control");
  });

  it("is as good as absent where it is null, and its unknown fields are dropped and named", async () => {
    const { sent, dropped } = await send({
      cache_control: { ...cache_control, scope: "global" },
      tools: null,
      messages: [{ ...hello, cache_control: null }],
    });
    expect(sent).toMatchObject({ cache_control, messages: [hello] });
    expect(dropped).toBe("cache_control.scope");
  });

  it.each<[string, object]>([
    ["cache_control", { cache_control: true }],
    ["cache_control.type", { cache_control: {} }],
    ["cache_control.ttl", { cache_control: { type: "ephemeral", ttl: 60 } }],
    [
      "messages.0.content.0.cache_control",
      { messages: [{ role: "user", content: [{ type: "text", text: "a", cache_control: [] }] }] },
    ],
    ["messages.0.cache_control.type", { messages: [{ ...hello, cache_control: {} }] }],
    ["tools.0.cache_control", { tools: [{ type: "function", function: { name: "a" }, cache_control: "yes" }] }],
    ["tools.0.function.cache_control", { tools: [{ type: "function", function: { name: "a", cache_control: 1 } }] }],
  ])("is refused where it is malformed: %s", async (field, more) => {
    const error = await expectError(await proxy.post(path, request("hello", more)), 400, "chat-completions");
    expect(error.message).toContain(`${field}: `);
  });
});
