import { createManualClock, type ManualClock } from "@portico/adapters/clock/manual";
import { type MemoryUserFile, memoryUserFiles } from "@portico/adapters/user-files/memory";
import { ports } from "@portico/core";
import { createShownRoom } from "../../../plugins/src/conversations-runs/turns/shown-files.ts";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type AgentClient, type AgentService, startAgentService } from "../../harness/agent-app.ts";
import { createGate } from "../../harness/gate.ts";

const PICTURE = { userId: "owner", name: "picture.png", mimeType: "image/png", bytes: Buffer.from("a picture") };
const NOTE = { userId: "owner", name: "note.txt", mimeType: "text/plain", bytes: Buffer.from("Tea at five. 🍵") };
const media = new Map<string, MemoryUserFile>();
const attachments = new Map<string, MemoryUserFile>();
const seen: { readonly history: ports.AgentTurn["history"]; readonly input: ports.AgentTurn["input"] }[] = [];

let service: AgentService;
let client: AgentClient;
beforeEach(async () => {
  media.clear();
  attachments.clear();
  media.set("m-1.png", PICTURE).set("m-2.png", { ...PICTURE, userId: "member" });
  attachments.set("/attachments/a-1", NOTE).set("/attachments/a-2", { ...NOTE, userId: "member" });
  seen.length = 0;
  service = await startAgentService({
    adapters: [memoryUserFiles({ media, attachments })],
    agents: new Map([["helper", { name: "Helper", engine: "scripted", tools: ["ReadAttachment"] }]]),
  });
  service.engine.otherwise(async ({ history, input }, { say }) => {
    seen.push({ history, input });
    await say({ type: "text", delta: "Seen" });
  });
  client = await service.connect("owner");
  await expect.poll(() => client.socket.connected).toBe(true);
});
afterEach(() => service.close());

const start = (more: object, options: object = {}) => client.start("Look", { ...more }, { ...options });
const played = async (more: object, options: object = {}) => {
  const { status, clientRequestId } = await start(more, options);
  expect(status).toBe(202);
  return client.ended(clientRequestId);
};
const shown = { type: "media", mediaType: "image/png", name: "picture.png", data: PICTURE.bytes.toString("base64") };

describe("mediaRefs (4.5 rule 11)", () => {
  it("reach the model beside the words", async () => {
    await played({ mediaRefs: [{ mediaId: "m-1.png", type: "image", name: "whatever" }] });
    expect(seen).toEqual([{ history: [], input: [{ type: "text", text: "Look" }, shown] }]);
  });

  it("that cannot be looked up now are refused with 503, and nothing is admitted", async () => {
    const [files] = service.app.port(ports.userFiles);
    vi.spyOn(files!, "media").mockRejectedValueOnce(new ports.UserFilesUnavailable("The bucket is away"));
    const { status, body, sent, clientRequestId } = await start({ mediaRefs: [{ mediaId: "m-1.png" }] });
    expect([status, body.code]).toEqual([503, "registry_unavailable"]);
    expect((await service.call("owner", "POST", "/api/query/start", sent)).status).toBe(202);
    expect((await client.ended(clientRequestId)).event).toBe("query:complete");
  });

  it("are enough without any words", async () => {
    await played({ prompt: "", mediaRefs: [{ mediaId: "m-1.png" }] });
    expect(seen[0]!.input).toEqual([shown]);
  });

  it("are seen again in the next turn, and are kept in the conversation as references", async () => {
    const { data } = await played({ mediaRefs: [{ mediaId: "m-1.png" }] });
    const { clientRequestId } = await client.followUp(data.sessionId, "And now?");
    await client.ended(clientRequestId);
    expect(seen[1]!.history[0]).toEqual({ role: "user", parts: [{ type: "text", text: "Look" }, shown] });
    const { body } = await service.call("owner", "GET", `/api/conversations/${data.conversationId}/messages`);
    expect(body.messages[0].parts).toEqual([
      { type: "text", text: "Look" },
      { type: "media_ref", reference: "m-1.png", name: "picture.png", mimeType: "image/png", size: PICTURE.bytes.length },
    ]);
  });

  it.each(["m-2.png", "m-3.png", "../m-1.png", "constructor"])(
    "400 for %s, which belongs to another user or does not exist",
    async (mediaId) => {
      const { status, body } = await start({ mediaRefs: [{ mediaId }] });
      expect([status, body.code]).toEqual([400, "unknown_media"]);
      expect(seen).toEqual([]);
    },
  );

  it.each([[[{}]], [["m-1.png"]], [[{ mediaId: 1 }]], ["m-1.png"], [Array.from({ length: 33 }, () => ({ mediaId: "m-1.png" }))]])(
    "400 for what is no list of media (%#)",
    async (mediaRefs) => {
      const { status, body } = await start({ mediaRefs });
      expect([status, body.code]).toEqual([400, "invalid_request"]);
    },
  );

  it("that are gone, or too much, become notes", async () => {
    media.set("large.png", { ...PICTURE, name: "large.png", bytes: Buffer.alloc(20 * 1024 * 1024 + 1) });
    const { data } = await played({ mediaRefs: [{ mediaId: "large.png" }, { mediaId: "m-1.png" }] });
    expect(seen[0]!.input[1]).toEqual({ type: "text", text: expect.stringContaining("too large") });
    expect(seen[0]!.input[2]).toEqual(shown);
    media.delete("m-1.png");
    const { clientRequestId } = await client.followUp(data.sessionId, "And now?");
    await client.ended(clientRequestId);
    expect(seen[1]!.history[0]!.parts[2]).toEqual({ type: "text", text: expect.stringContaining("no longer exists") });
  });

  it("the same submission again is a duplicate, also if its media changed or are gone", async () => {
    const { sent, clientRequestId } = await start({ mediaRefs: [{ mediaId: "m-1.png" }] });
    await client.ended(clientRequestId);
    media.delete("m-1.png");
    const { status, body } = await service.call("owner", "POST", "/api/query/start", sent);
    expect([status, body.duplicate]).toEqual([202, true]);
    expect(seen).toHaveLength(1);
  });
});

describe("the room for files of all turns that execute at once in a process", () => {
  const SIZE = PICTURE.bytes.length;
  const refs = { mediaRefs: [{ mediaId: "m-1.png" }] };
  /** A service with room for one picture, and one turn in it that shows it until it is told to end. */
  const full = async (clock?: ManualClock) => {
    const own = await startAgentService({
      adapters: [memoryUserFiles({ media, attachments })],
      agents: new Map([["helper", { name: "Helper", engine: "scripted", tools: ["ReadAttachment"] }]]),
      runtime: { shownBytes: SIZE },
      isOneExecuting: true,
      ...(clock && { clock }),
    });
    const gate = createGate();
    const inputs: ports.AgentTurn["input"][] = [];
    own.engine.on("Hold", () => gate.opened);
    own.engine.otherwise(async ({ input }) => void inputs.push(input));
    const caller = await own.connect("owner");
    const holding = await caller.start("Hold", refs);
    await expect.poll(() => own.engine.played).toEqual(["Hold"]);
    return { service: own, caller, holding, gate, inputs, [Symbol.asyncDispose]: () => own.close() };
  };

  it("a turn that finds it full begins when another ends; one without media does not wait", async () => {
    await using story = await full();
    const second = await story.caller.start("Look", refs);
    const plain = await story.caller.start("No media");
    await story.caller.ended(plain.clientRequestId);
    expect(story.inputs).toHaveLength(1);
    story.gate.open();
    await story.caller.ended(second.clientRequestId);
    expect(story.inputs[1]).toEqual([{ type: "text", text: "Look" }, shown]);
  });

  it("a turn that gets no room for a minute continues with notes instead", async () => {
    const clock = createManualClock();
    await using story = await full(clock);
    const { clientRequestId } = await story.caller.start("Look", refs);
    await vi.waitFor(
      async () => {
        await clock.advance(60_000);
        expect(story.inputs).toHaveLength(1);
      },
      { timeout: 30_000 },
    );
    expect(story.inputs[0]![1]).toEqual({ type: "text", text: expect.stringContaining("cannot be shown now") });
    await story.caller.ended(clientRequestId);
    story.gate.open();
  });

  it("a turn that is stopped in line leaves it, and failed turns give back what they had", async () => {
    await using story = await full();
    story.service.engine.on("Fail", async () => {
      throw new Error("It broke");
    });
    const waiting = await story.caller.start("Look", refs);
    const { sessionId } = await story.caller.event("query:started", waiting.clientRequestId);
    story.caller.socket.emit("query:abort", { sessionId, clientRequestId: waiting.clientRequestId });
    expect((await story.caller.ended(waiting.clientRequestId)).data.terminal.status).toBe("interrupted");
    story.gate.open();
    for (const prompt of ["Fail", "Fail", "Look"]) {
      const { clientRequestId } = await story.caller.start(prompt, refs);
      await story.caller.ended(clientRequestId);
    }
    expect(story.inputs.at(-1)![1]).toEqual(shown);
  });

  it("is given in the order of the requests; room for a turn that has ended goes to the next", async () => {
    const clock = createManualClock();
    const { signal } = new AbortController();
    const { open } = createShownRoom({ bytes: 10, clock });
    const [first, large, small, last] = [open(), open(), open(), open()];
    expect(first.take(8)).toBe(true);
    const told: string[] = [];
    const waiting = [
      large.wait(9, signal).then((has) => told.push(`large ${has}`)),
      small.wait(1, signal).then((has) => told.push(`small ${has}`)),
    ];
    expect(last.take(1)).toBe(false);
    large.close();
    first.close();
    await Promise.all(waiting);
    expect(told).toEqual(["large false", "small true"]);
    expect([last.take(10), last.take(9)]).toEqual([false, true]);
  });

  it("ReadAttachment shows no image if there is no room left", async () => {
    await using story = await full();
    attachments.set("image", PICTURE);
    const results: ports.ToolResult[] = [];
    story.service.engine.on("Read", async (_turn, { callTool, signal }) => {
      results.push(await callTool({ toolId: "ReadAttachment", arguments: { fileReference: "image" } }, signal));
    });
    const read = async () => story.caller.ended((await story.caller.start("Read")).clientRequestId);
    await read();
    expect(results[0]).toMatchObject({ isError: true });
    story.gate.open();
    await story.caller.ended(story.holding.clientRequestId);
    await read();
    expect(results[1]).toMatchObject({ isError: false });
  });
});

describe("options.fileReferences (4.5 rule 11)", () => {
  const read = async (args: object) => {
    let result: ports.ToolResult | undefined;
    service.engine.on("Read", async (_turn, { callTool, signal }) => {
      result = await callTool({ toolId: "ReadAttachment", arguments: args }, signal);
    });
    const { clientRequestId } = await client.start("Read");
    await client.ended(clientRequestId);
    return result!;
  };

  it("are named to the model, which reads them with ReadAttachment", async () => {
    await played({}, { fileReferences: ["/attachments/a-1"] });
    expect(seen[0]!.input[1]).toEqual({
      type: "text",
      text: expect.stringMatching(/"note\.txt".*ReadAttachment.*\/attachments\/a-1/),
    });
    expect(await read({ fileReference: "/attachments/a-1" })).toEqual({
      content: [{ type: "text", text: "Tea at five. 🍵" }],
      isError: false,
    });
  });

  it.each(["/attachments/a-2", "/attachments/a-3", "/etc/passwd", ""])(
    "400 for %j, which is another user's or none",
    async (reference) => {
      const { status, body } = await start({}, { fileReferences: [reference] });
      expect([status, body.code]).toEqual([400, "unknown_file"]);
    },
  );

  it.each(["/attachments/a-2", "/attachments/a-3", "/etc/passwd"])(
    "ReadAttachment reads no file of others: %s",
    async (fileReference) => {
      expect((await read({ fileReference })).isError).toBe(true);
    },
  );

  it("ReadAttachment reads long texts in pieces, which together are the text", async () => {
    const text = Array.from({ length: 20_000 }, (_, at) => `Line ${at} ä`).join("\n");
    attachments.set("long", { ...NOTE, bytes: Buffer.from(text) });
    let [whole, offset]: [string, number | undefined] = ["", 0];
    while (offset !== undefined) {
      const { content } = await read({ fileReference: "long", offset });
      const [first] = content;
      const piece = first?.type === "text" ? first.text : "";
      const more = /\n\[there is more: go on with offset (\d+)\]$/.exec(piece);
      whole += more ? piece.slice(0, more.index) : piece;
      offset = more ? Number(more[1]) : undefined;
    }
    expect(whole).toBe(text);
  });

  it("a character of two halves that does not fit into a piece is whole in the next", async () => {
    const text = `${"x".repeat(39_999)}🍵${"y".repeat(10)}`;
    attachments.set("border", { ...NOTE, bytes: Buffer.from(text) });
    const first = await read({ fileReference: "border" });
    expect(first.content).toEqual([{ type: "text", text: `${"x".repeat(39_999)}\n[there is more: go on with offset 39999]` }]);
    const second = await read({ fileReference: "border", offset: 39_999 });
    expect(second.content).toEqual([{ type: "text", text: `🍵${"y".repeat(10)}` }]);
  });

  it("ReadAttachment shows images, and describes files that are not text", async () => {
    attachments
      .set("image", PICTURE)
      .set("binary", { ...NOTE, mimeType: "application/zip", bytes: Buffer.from([0x50, 0x4b, 0, 0xff]) });
    expect((await read({ fileReference: "image" })).content).toEqual([
      { type: "image", mimeType: "image/png", data: shown.data },
    ]);
    expect(await read({ fileReference: "binary" })).toMatchObject({ isError: true });
  });
});
