import { type AgentClient, type AgentClientOptions, connectAgent, type Query, type SubmissionState } from "@portico/client";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type AgentService, startAgentService, TOKENS } from "../../harness/agent-app.ts";
import { type BrokenLine, openBrokenLine } from "../../harness/broken-line.ts";
import { createGate } from "../../harness/gate.ts";
import { mountedUnder } from "../../harness/hosts.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";

/** What the client promises of queries, over either way to speak the realtime channel. */
export function queriesOver(realtime: "socket-io" | "websocket"): void {
  const started = { isPlainWebSocket: realtime === "websocket" };
  let service: AgentService;
  let line: BrokenLine;
  const clients: AgentClient[] = [];
  beforeAll(async () => {
    service = await startAgentService(started);
    line = await openBrokenLine(service.url);
  });
  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
    line.fate = () => "through";
  });
  afterAll(async () => {
    await line[Symbol.asyncDispose]();
    await service.close();
  });

  /** A client of the service behind the line. One connection per call, so that each has a fate of its own. */
  function connect(options: Partial<AgentClientOptions> = {}): AgentClient {
    const client = connectAgent({
      baseURL: line.url,
      token: TOKENS.owner,
      realtime,
      transports: ["websocket"],
      fetch: (request) => fetch(request, { headers: { ...Object.fromEntries(request.headers), connection: "close" } }),
      ...options,
    });
    clients.push(client);
    return client;
  }
  async function textOf(query: Query): Promise<string> {
    let text = "";
    for await (const { delta } of query) text += delta ?? "";
    return text;
  }
  const plays = (prompt: string) => service.engine.played.filter((each) => each === prompt).length;

  describe("submit", () => {
    it("streams the messages and resolves with the end", async () => {
      const query = connect().submit({ agentId: "helper", prompt: "Hello" });
      expect(await textOf(query)).toBe("You said: Hello");
      await query.accepted;
      expect(await query.started).toMatchObject({ agentId: "helper", sessionId: expect.stringMatching(/^ses_/) });
      expect(await query.ended).toMatchObject({
        status: "completed",
        terminal: { status: "completed" },
        result: { output: "You said: Hello" },
      });
    });

    it.each(
      realtime === "websocket"
        ? [[["websocket"]] as const]
        : ([[["polling"]], [["websocket"]], [["polling", "websocket"]]] as const),
    )("reaches a service that an application has mounted under a path of its own, over %j", async (transports) => {
      await using mounted = await mountedUnder("/desk/agent", service.app.surface("agent"));
      for (const baseURL of [mounted.url, `${mounted.url}/`]) {
        const query = connect({ baseURL, transports }).submit({ agentId: "helper", prompt: "Hello" });
        expect(await textOf(query)).toBe("You said: Hello");
      }
    });

    it("continues a conversation, and a session", async () => {
      const client = connect();
      const first = client.submit({ agentId: "helper", prompt: "1" });
      const { sessionId, conversationId } = (await first.started)!;
      expect((await client.submit({ agentId: "helper", prompt: "2", conversationId }).started)?.sessionId).toBe(sessionId);
      const third = client.submit({ agentId: "helper", sessionId, prompt: "3" });
      expect((await third.ended).status).toBe("completed");
      const { messages } = await client.calls.messages({ params: { id: conversationId! } });
      expect(messages).toHaveLength(6);
    });

    it("abort stops the turn: interrupted, with what was produced", async () => {
      service.engine.on("endless", async (_turn, context) => {
        await context.say({ type: "text", delta: "so far" });
        await untilStopped(context);
      });
      const query = connect().submit({ agentId: "helper", prompt: "endless" });
      for await (const { delta } of query) {
        expect(delta).toBe("so far");
        query.abort();
      }
      expect(await query.ended).toMatchObject({ status: "interrupted", terminal: { reason: "user_stop", partial: "so far" } });
    });

    it("abort at once stops the turn when it begins", async () => {
      service.engine.on("endless", (_turn, context) => untilStopped(context));
      const query = connect().submit({ agentId: "helper", prompt: "endless" });
      query.abort();
      expect(await query.ended).toMatchObject({ status: "interrupted", terminal: { reason: "user_stop" } });
    });

    it("a turn that fails is an end with its code; what was said stays", async () => {
      service.engine.on("broken", async (_turn, { say }) => {
        await say({ type: "text", delta: "half" });
        throw new Error("no");
      });
      const query = connect().submit({ agentId: "helper", prompt: "broken" });
      expect(await textOf(query)).toBe("half");
      expect(await query.ended).toMatchObject({ status: "failed", code: "internal_error" });
    });

    it("a refusal rejects everything, once", async () => {
      const query = connect().submit({ agentId: "nobody", prompt: "x" });
      for (const promise of [query.accepted, query.started, query.ended, textOf(query)])
        await expect(promise).rejects.toMatchObject({ name: "CallFailed", code: "unknown_agent" });
    });

    it("a wrong token is a refusal", async () => {
      const client = connect({ token: "wrong" });
      await expect(client.connected()).rejects.toMatchObject({ data: { code: "unauthorized" } });
      await expect(client.submit({ agentId: "helper", prompt: "x" }).ended).rejects.toThrow();
    });

    it("refuses the clientRequestId of a query that is still open, which goes on undisturbed", async () => {
      const gate = createGate();
      service.engine.on("still open", () => gate.opened);
      const client = connect();
      const ids = { clientRequestId: "open-request-0001", userMessageId: "open-message-0001" };
      const query = client.submit({ agentId: "helper", prompt: "still open", ...ids });
      expect(() => client.submit({ agentId: "helper", prompt: "still open", ...ids })).toThrow(TypeError);
      gate.open();
      expect((await query.ended).status).toBe("completed");
      const again = client.submit({ agentId: "helper", prompt: "still open", ...ids });
      expect((await again.ended).status).toBe("completed");
      expect(plays("still open")).toBe(1);
    });

    it("an answer that comes after its query's end does not touch the same query, submitted again", async () => {
      const gate = createGate();
      let posts = 0;
      const client = connect({
        fetch: async (request) => {
          const isFirst = request.url.endsWith("/start") && ++posts === 1;
          const response = await fetch(request);
          if (!isFirst) return response;
          await gate.opened;
          return Response.json({ error: "invalid_request" }, { status: 400 });
        },
      });
      const ids = { clientRequestId: "late-request-0001", userMessageId: "late-message-0001" };
      const query = client.submit({ agentId: "helper", prompt: "answered late", ...ids });
      await query.ended;
      const again = client.submit({ agentId: "helper", prompt: "answered late", ...ids });
      gate.open();
      expect(await textOf(again)).toBe("You said: answered late");
      expect((await again.ended).status).toBe("completed");
    });

    it("closing the client ends its queries as unknown", async () => {
      const gate = createGate();
      service.engine.on("left alone", () => gate.opened);
      const client = connect();
      const query = client.submit({ agentId: "helper", prompt: "left alone" });
      await query.started;
      client.close();
      expect(await query.ended).toMatchObject({ status: "unknown" });
      expect((await client.submit({ agentId: "helper", prompt: "too late" }).ended).status).toBe("unknown");
      gate.open();
    });
  });

  describe("what became of a submission is found out (4.6, 7.6)", () => {
    it("the answer was lost: it is not submitted again", async () => {
      let posts = 0;
      line.fate = (first) => (first.startsWith("POST /api/query/start") ? (posts++, "lost after it arrived") : "through");
      const query = connect().submit({ agentId: "helper", prompt: "answer lost" });
      expect(await textOf(query)).toBe("You said: answer lost");
      expect([posts, plays("answer lost")]).toEqual([1, 1]);
    });

    it("the request was lost: it is submitted again with identical IDs and content, and runs once", async () => {
      let posts = 0;
      line.fate = (first) => (first.startsWith("POST /api/query/start") && ++posts === 1 ? "lost before it arrives" : "through");
      const query = connect().submit({ agentId: "helper", prompt: "request lost" });
      expect((await query.ended).status).toBe("completed");
      expect([posts, plays("request lost")]).toEqual([2, 1]);
    });

    it("the lookup is lost, too: it is asked again", async () => {
      let lookups = 0;
      line.fate = (first) => {
        if (first.startsWith("POST /api/query/start")) return "lost after it arrived";
        return first.includes("/lookup") && ++lookups < 3 ? "lost before it arrives" : "through";
      };
      const gate = createGate();
      service.engine.on("slow to speak", () => gate.opened);
      const query = connect().submit({ agentId: "helper", prompt: "slow to speak" });
      await query.accepted;
      gate.open();
      expect((await query.ended).status).toBe("completed");
      expect(plays("slow to speak")).toBe(1);
    });

    it("a service that cannot tell ends automatic replay: the end is unknown", async () => {
      const posts: string[] = [];
      const client = connect({
        unknownMs: 100,
        fetch: async (request) => {
          posts.push(new URL(request.url).pathname);
          if (request.url.endsWith("/start")) throw new TypeError("The connection broke");
          const answer = await (await fetch(request)).json();
          return Response.json({ ...answer, results: [{ clientRequestId: "x", status: "unknown" }] });
        },
      });
      const query = client.submit({ agentId: "helper", prompt: "never arrives" });
      expect(await query.ended).toMatchObject({ status: "unknown" });
      expect(posts.filter((path) => path.endsWith("/start"))).toHaveLength(1);
      expect(await textOf(query)).toBe("");
    });

    it("a service that cannot tell for a while is asked again: a query that never arrived is then submitted again", async () => {
      let [starts, lookups] = [0, 0];
      const client = connect({
        fetch: async (request) => {
          if (request.url.endsWith("/start") && ++starts === 1) throw new TypeError("The connection broke");
          const answer = await fetch(request);
          if (!request.url.endsWith("/lookup") || ++lookups > 2) return answer;
          return Response.json({ ...(await answer.json()), results: [{ clientRequestId: "x", status: "unknown" }] });
        },
      });
      const states: SubmissionState[] = [];
      const query = client.submit({ agentId: "helper", prompt: "arrives late" }, { onState: (state) => void states.push(state) });
      expect(await query.ended).toMatchObject({ status: "completed" });
      expect([starts, plays("arrives late")]).toEqual([2, 1]);
      expect(states.filter((state) => state === "unknown" || state === "absent")).toEqual(["unknown", "unknown", "absent"]);
    });

    it("a turn that executes does not end as unknown because lookups cannot tell for a while", async () => {
      const gate = createGate();
      service.engine.on("long while", () => gate.opened);
      let lookups = 0;
      const client = connect({
        silenceMs: 20,
        fetch: async (request) => {
          const answer = await fetch(request);
          if (!request.url.endsWith("/lookup") || ++lookups > 4) return answer;
          return Response.json({ ...(await answer.json()), results: [{ clientRequestId: "x", status: "unknown" }] });
        },
      });
      const query = client.submit({ agentId: "helper", prompt: "long while" });
      await expect.poll(() => lookups).toBeGreaterThan(5);
      gate.open();
      expect(await query.ended).toMatchObject({ status: "completed" });
    });

    it("a conversation that is being cleared is retried later, with the same IDs", async () => {
      const gate = createGate();
      service.engine.on("in the way", async (_turn, context) => {
        await untilStopped(context).catch(async (error: unknown) => {
          await gate.opened;
          throw error;
        });
      });
      const client = connect();
      const first = client.submit({ agentId: "helper", prompt: "in the way" });
      const { conversationId } = (await first.started)!;
      const clearing = client.calls.clear({ params: { id: conversationId! } });
      const probed = async () => {
        const answered = Promise.withResolvers<number>();
        const probe = connect({
          fetch: async (request) => {
            const answer = await fetch(request);
            answered.resolve(answer.status);
            return answer;
          },
        });
        probe.submit({ agentId: "helper", prompt: "probe", conversationId });
        const status = await answered.promise;
        probe.close();
        return status;
      };
      await expect.poll(probed).toBe(409);
      const query = client.submit({ agentId: "helper", prompt: "patient", conversationId });
      gate.open();
      await clearing;
      expect((await query.ended).status).toBe("completed");
      expect(plays("patient")).toBe(1);
    });

    it("every step and the lookup's answer are told to listeners", async () => {
      const gate = createGate();
      service.engine.on("ahead of it", () => gate.opened);
      const client = connect();
      const { conversationId } = (await client.submit({ agentId: "helper", prompt: "ahead of it" }).started)!;
      let posts = 0;
      line.fate = (first) => {
        if (!first.startsWith("POST /api/query/start")) return "through";
        return ++posts === 1 ? "lost before it arrives" : "lost after it arrived";
      };
      const states: SubmissionState[] = [];
      const query = client.submit(
        { agentId: "helper", prompt: "followed", conversationId },
        { onState: (state) => states.push(state) },
      );
      await query.accepted;
      gate.open();
      await query.ended;
      expect(states).toEqual(["sending", "unanswered", "absent", "sending", "unanswered", "reserved", "accepted"]);
    });
  });

  describe("a connection that breaks", () => {
    it("in the middle of a turn costs no message, and none comes twice", async () => {
      const gates = Array.from({ length: 6 }, createGate);
      service.engine.on("counted", async (_turn, { say }) => {
        for (const [at, gate] of gates.entries()) {
          await gate.opened;
          await say({ type: "text", delta: `${at + 1}` });
        }
      });
      const query = connect().submit({ agentId: "helper", prompt: "counted" });
      let text = "";
      gates[0]!.open();
      for await (const { delta } of query) {
        text += delta;
        const next = Number(delta);
        if (next % 2 === 1) line.cut();
        gates[next]?.open();
      }
      expect(text).toBe("123456");
      expect((await query.ended).status).toBe("completed");
    });

    it("is told to listeners", async () => {
      const states: string[] = [];
      const client = connect({ onConnection: (state) => states.push(state) });
      await client.connected();
      line.cut();
      await expect.poll(() => states).toContain("interrupted");
      await client.connected();
      client.close();
      expect(states).toEqual(["connected", "interrupted", "connected", "closed"]);
      const refused: string[] = [];
      const stranger = connect({ token: "wrong", onConnection: (state) => refused.push(state) });
      await expect(stranger.connected()).rejects.toThrow();
      expect(refused.at(-1)).toBe("refused");
    });

    it("waits for a service that is not there yet, and goes on after one that was restarted", async () => {
      const folder = temporaryFolder();
      await using later = await openBrokenLine();
      const client = connect({ baseURL: later.url });
      const query = client.submit({ agentId: "helper", prompt: "early" });
      const first = await startAgentService({ ...started, dataDir: folder.path });
      first.engine.on("cut off", async (_turn, { say }) => {
        await say({ type: "text", delta: "half" });
        await new Promise(() => {});
      });
      later.target = first.url;
      expect((await query.ended).status).toBe("completed");
      const second = client.submit({ agentId: "helper", prompt: "cut off" });
      for await (const { delta } of second) {
        expect(delta).toBe("half");
        break;
      }
      // As after a kill: another process has the stores, and nothing comes from the first any more.
      later.target = undefined;
      later.cut();
      const next = await startAgentService({ ...started, dataDir: folder.path });
      later.target = next.url;
      expect(await second.ended).toMatchObject({ status: "failed", code: "process_restart" });
      await next.close();
      await first.close();
      folder.remove();
    });

    /** A query whose turn ends while its client is away. The client comes back under another ID, to which nothing is replayed. */
    async function untold(silenceMs: number) {
      const gate = createGate();
      service.engine.on("untold", () => gate.opened);
      const client = connect({ silenceMs, clientInstanceId: "first-instance-0001" });
      const query = client.submit({ agentId: "helper", prompt: "untold" });
      const { runId } = (await query.started)!;
      line.target = undefined;
      line.cut();
      gate.open();
      await expect.poll(async () => (await service.call("owner", "GET", `/api/runs/${runId}`)).body.status).toBe("idle");
      const comesAs = (id: string) => void ((client as { clientInstanceId: string }).clientInstanceId = id);
      comesAs("other-instance-0001");
      line.target = service.url;
      return { client, query, comesAs };
    }

    it("an end whose event was lost is unknown, once the run is idle and a new connection does not bring it", async () => {
      const { query } = await untold(50);
      expect(await query.ended).toMatchObject({ status: "unknown", reason: expect.stringContaining("rest") });
    });

    it("an end whose event was lost is brought by a new connection", async () => {
      const { client, query, comesAs } = await untold(500);
      await client.connected();
      comesAs("first-instance-0001");
      expect(await query.ended).toMatchObject({ status: "completed" });
    });
  });
}
