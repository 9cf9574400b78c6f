import { spawn } from "node:child_process";
import { once } from "node:events";
import { type OpenTelemetryOptions, openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import type { ports } from "@portico/core";
import { describe, expect, it } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";

describe("json lines", () => {
  it("write one object per request, with the declared fields and nothing else", async () => {
    const [line] = await lines({}, (telemetry) => {
      const trace = telemetry.begin(REQUEST);
      trace.note({ provider: "main", model: "m-large", prompt: "my secret diary" } as ports.RequestFacts);
      trace.end({ status: 200 });
    });
    const { time, ms, ...fields } = JSON.parse(line!) as Record<string, unknown>;
    expect(fields).toEqual({
      level: "info",
      request: "req_1",
      area: "model-proxy",
      route: "model-proxy.messages",
      method: "POST",
      status: 200,
      provider: "main",
      model: "m-large",
      msg: "request",
    });
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(ms).toBeTypeOf("number");
  });

  it.each(["plain/name-1.2:3", 'a "quoted" \\ name', "line\nbreak\t\u0000\u007f", "größer 模型 😀", "\ud800 alone"])(
    "write any text of a request as JSON does: %j",
    async (text) => {
      const [line] = await lines({}, (telemetry) => {
        const trace = telemetry.begin({ ...REQUEST, callerRequestId: text, method: text });
        trace.note({ model: text, inputTokens: 1e21, outputTokens: Number.NaN, firstByteMs: -0, streamed: false });
        trace.end({ status: 200, error: text });
      });
      const fields = JSON.parse(line!) as Record<string, unknown>;
      expect(fields).toMatchObject({ callerRequestId: text, method: text, model: text, error: text, outputTokens: null });
      expect(line).toBe(`${JSON.stringify(fields)}\n`);
    },
  );

  it("count the time from the request, also if its beginning was told late", async () => {
    const [line] = await lines({}, (telemetry) => telemetry.begin({ ...REQUEST, beganMsAgo: 60_000 }).end({ status: 200 }));
    expect(JSON.parse(line!).ms).toBeGreaterThanOrEqual(60_000);
  });

  it.each([
    [{ status: 200 }, "info"],
    [{ status: 304 }, "info"],
    [{ status: 404 }, "warn"],
    [{ status: 499 }, "info"],
    [{ status: 500 }, "error"],
    [{ status: 504, error: "timeout" }, "error"],
    [{ status: 200, error: "answer_broken" }, "warn"],
    [{ status: 200, error: "upstream_broken" }, "warn"],
    [{ status: 200, error: "caller_left" }, "info"],
  ])("have a level by how the request ended: %o is %s", async (outcome, level) => {
    const [line] = await lines({}, (telemetry) => telemetry.begin(REQUEST).end(outcome));
    expect(JSON.parse(line!)).toMatchObject({ level });
  });

  it("leave out fields that are not plain values, also against the types", async () => {
    const [line] = await lines({}, ({ log }) =>
      log.info("line", { good: 1, bad: { token: "s" }, worse: ["s"] } as unknown as ports.LogFields),
    );
    expect(JSON.parse(line!)).toEqual({ level: "info", time: expect.any(String), good: 1, msg: "line" });
  });

  it("leave out fields that would replace those of every line", async () => {
    const [line] = await lines({}, ({ log }) => log.info("line", { level: "none", time: 0, msg: "x", cause: "y", good: 1 }));
    expect(line).toMatch(/^\{"level":"info","time":"[^"]+","good":1,"msg":"line"\}\n$/);
  });

  it.each([
    ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "0af7651916cd43dd8448eb211c80319c"],
    ["01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later", "0af7651916cd43dd8448eb211c80319c"],
    ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", undefined],
    ["ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", undefined],
    ["00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", undefined],
    ["00-00000000000000000000000000000000-b7ad6b7169203331-01", undefined],
    ["00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", undefined],
    [" 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", undefined],
    ["x".repeat(10_000), undefined],
  ])("have the trace id of a valid traceparent, and ignore others: %s", async (traceparent, traceId) => {
    const header = (name: string) => (name === "traceparent" ? traceparent : undefined);
    const [line] = await lines({}, (telemetry) => telemetry.begin({ ...REQUEST, header }).end({ status: 200 }));
    expect((JSON.parse(line!) as { traceId?: string }).traceId).toBe(traceId);
  });

  it("cut a value that is too long for a name", async () => {
    const [line] = await lines({}, ({ log }) => log.info("line", { model: "m".repeat(5000) }));
    expect(line!.length).toBeLessThan(400);
  });
});

describe("the level", () => {
  it("silences what is quieter", async () => {
    const told = await lines({ level: "warn" }, (telemetry) => {
      telemetry.log.debug("one");
      telemetry.log.info("two");
      telemetry.log.warn("three");
      telemetry.begin(REQUEST).end({ status: 200 });
      telemetry.begin(REQUEST).end({ status: 404 });
    });
    expect(told.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(["three", "request"]);
  });

  it("is info by default", async () => {
    const told = await lines({}, ({ log }) => [log.debug("no"), log.info("yes")]);
    expect(told).toHaveLength(1);
  });
});

describe("text lines", () => {
  it("write one compact line per request", async () => {
    const [line] = await lines({ format: "text" }, (telemetry) => {
      const trace = telemetry.begin(REQUEST);
      trace.note({ provider: "main", model: "m-large" });
      trace.end({ status: 404, error: "not_found" });
    });
    expect(line!.replace(/\d\d:\d\d:\d\d\.\d{3}/, "TIME").replace(/[\d.]+ms/, "1ms")).toBe(
      "TIME WARN  404 POST model-proxy.messages 1ms request=req_1 provider=main model=m-large error=not_found\n",
    );
  });

  it("quote what could pretend to be another line or field", async () => {
    const told = await lines({ format: "text" }, ({ log }) =>
      log.info("a\nb", { model: "x status=200\n12:00:00.000 INFO  forged" }),
    );
    expect(told).toHaveLength(1);
    expect(told[0]!.split("\n")).toHaveLength(2);
    expect(told[0]).toContain('a b model="x status=200\\n12:00:00.000 INFO  forged"\n');
  });
});

describe("a destination", () => {
  const messages = (text: string) =>
    text.split("\n").flatMap((line) => (line === "" ? [] : [(JSON.parse(line) as { msg: string }).msg]));

  it("gets the lines of one turn together, in order, and those after an error and on closing at once", async () => {
    const told: unknown[] = [];
    const destination = { write: (text: string) => void told.push(messages(text)), flushSync: () => void told.push("flush") };
    const { port, close } = await openAdapter(openTelemetry({ destination }));
    port.log.info("one");
    port.log.info("two");
    expect(told).toEqual([]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(told.splice(0)).toEqual([["one", "two"]]);
    port.log.info("three");
    port.log.error("four");
    expect(told.splice(0)).toEqual([["three", "four"], "flush"]);
    port.log.info("five");
    await close();
    expect(told).toEqual([["five"], "flush"]);
  });

  it("does not hold on to the process when its app is closed", async () => {
    const before = process.listenerCount("exit");
    const { close } = await openAdapter(openTelemetry({ destination: { write() {} } }));
    expect(process.listenerCount("exit")).toBe(before + 1);
    await close();
    expect(process.listenerCount("exit")).toBe(before);
  });

  it("that cannot be flushed causes no error for callers", async () => {
    const broken = () => {
      throw new Error("the reader is gone");
    };
    const { port, close } = await openAdapter(openTelemetry({ destination: { write() {}, flushSync: broken } }));
    expect(() => port.log.error("one")).not.toThrow();
    await expect(close()).resolves.toBeUndefined();
  });
});

describe("a crash", () => {
  // A child of its own, since the lines go to standard error and the process dies.
  const crash = async (how: string): Promise<string> => {
    const adapter = import.meta.resolve("@portico/adapters/telemetry/opentelemetry");
    const script = `
      const { openTelemetry } = await import(${JSON.stringify(adapter)});
      const telemetry = openTelemetry().spec.open({}, undefined, { onClose() {} });
      for (let n = 0; n < 1000; n++) telemetry.log.info("before");
      telemetry.log.error("the last words", {}, new Error("why"));
      ${how}`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "ignore", "pipe"] });
    let told = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (told += text));
    await once(child, "close");
    return told;
  };

  it.each([
    ["an uncaught exception", "throw new Error('crash')"],
    ["process.exit", "process.exit(1)"],
    ["SIGKILL in the same turn", "process.kill(process.pid, 'SIGKILL')"],
  ])("by %s loses no error line", async (_name, how) => {
    expect(await crash(how)).toContain("the last words");
  });
});

const REQUEST: ports.RequestBegin = {
  id: "req_1",
  area: "model-proxy",
  route: "model-proxy.messages",
  method: "POST",
  path: "/v1/messages",
  scheme: "http",
  header: () => undefined,
};

async function lines(options: OpenTelemetryOptions, run: (telemetry: ports.Telemetry) => unknown): Promise<string[]> {
  const written: string[] = [];
  const { port, close } = await openAdapter(
    openTelemetry({ ...options, destination: { write: (line: string) => void written.push(line) } }),
  );
  run(port);
  await close();
  return written.flatMap((text) => text.match(/.*\n/g) ?? []);
}
