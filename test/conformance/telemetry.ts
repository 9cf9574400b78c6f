import type { Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** The adapter under test, and what it needs. */
export interface TelemetryUnderTest {
  readonly adapter: Adapter<typeof ports.telemetry>;
  /** Everything that was told so far, as one text: what an operator could read. */
  told(): string | Promise<string>;
}

/** Options of `telemetryConformance`. */
export interface TelemetryConformanceOptions {
  /** Adapters that fill what the adapter needs. */
  readonly others?: readonly Adapter[];
}

const SECRET = "sk-very-secret-4711";

/** The law of the telemetry port, as vitest tests. `make` is called once per test; the adapter must tell lines of every level but debug. */
export function telemetryConformance(
  name: string,
  make: () => TelemetryUnderTest | Promise<TelemetryUnderTest>,
  { others = [] }: TelemetryConformanceOptions = {},
): void {
  describeSuite(`telemetry port: ${name}`, () => {
    let made: TelemetryUnderTest;
    let opened: OpenAdapter<ports.Telemetry>;
    let telemetry: ports.Telemetry;
    beforeEach(async () => {
      made = await make();
      opened = await openAdapter(made.adapter, others);
      telemetry = opened.port;
    });
    afterEach(() => opened.close());

    /** What was told once the adapter is closed: nothing may be lost on the way. */
    const toldInTheEnd = async (): Promise<string> => {
      await opened.close();
      return made.told();
    };

    const request = (more: Partial<ports.RequestBegin> = {}): ports.RequestBegin => ({
      id: "req_1",
      area: "hello",
      route: "hello.greet",
      method: "GET",
      path: "/api/hello/:name",
      scheme: "http",
      header: () => undefined,
      ...more,
    });

    it("tells messages with their fields, in order, and has told all when it is closed", async () => {
      telemetry.log.info("first line", { port: 81 });
      telemetry.log.warn("second line", { file: "a.json" });
      telemetry.log.error("third line", { isFatal: false });
      const told = await toldInTheEnd();
      const places = ["first line", "81", "second line", "a.json", "third line", "false"].map((text) => told.indexOf(text));
      expect(places.every((place) => place >= 0)).toBe(true);
      expect(told.indexOf("first line")).toBeLessThan(told.indexOf("second line"));
      expect(told.indexOf("second line")).toBeLessThan(told.indexOf("third line"));
    });

    it("tells of a cause its name, code, place, and its own causes", async () => {
      const inner = Object.assign(new RangeError("inner"), { code: "E_INNER" });
      telemetry.log.error("it failed", {}, new TypeError("outer", { cause: inner }));
      const told = await toldInTheEnd();
      for (const text of ["TypeError", "RangeError", "E_INNER", "telemetry.ts:"]) expect(told).toContain(text);
    });

    it("never tells what a cause says or carries", async () => {
      const cause = Object.assign(new Error(`upstream said ${SECRET}`), { headers: { authorization: SECRET }, body: SECRET });
      telemetry.log.error("it failed", {}, new Error(`at ${SECRET}\n    at ${SECRET} (file.ts:1:1)`, { cause }));
      telemetry.log.warn("it limped", {}, SECRET);
      telemetry.log.warn("it limped", {}, { name: "X", code: SECRET.repeat(9), toJSON: () => SECRET });
      const told = await toldInTheEnd();
      expect(told).toContain("it limped");
      expect(told).not.toContain(SECRET);
    });

    it("accepts any thrown value as a cause", async () => {
      const circle = new Error("circle");
      circle.cause = circle;
      const hostile = new Proxy(new Error("hostile"), {
        get() {
          throw new Error("do not touch");
        },
      });
      for (const cause of [circle, hostile, null, 1n, Symbol("s"), () => {}, Object.create(null)]) {
        telemetry.log.error("odd cause", {}, cause);
      }
      telemetry.log.info("still here");
      expect(await toldInTheEnd()).toContain("still here");
    });

    it("tells one request with its id, area, route, method, status and what was noted", async () => {
      const trace = telemetry.begin(request());
      trace.note({ provider: "main", model: "m-large" });
      trace.end({ status: 207 });
      const told = await toldInTheEnd();
      for (const text of ["req_1", "hello.greet", "GET", "207", "main", "m-large"]) expect(told).toContain(text);
    });

    it("tells the id that a request's caller chose", async () => {
      telemetry.begin(request({ callerRequestId: "from-a-proxy" })).end({ status: 200 });
      expect(await toldInTheEnd()).toContain("from-a-proxy");
    });

    it("runs the work of a request, and gives what it returns or throws", async () => {
      const trace = telemetry.begin(request());
      expect(trace.run(() => 7)).toBe(7);
      await expect(trace.run(async () => "later")).resolves.toBe("later");
      expect(() =>
        trace.run(() => {
          throw new RangeError("of the work");
        }),
      ).toThrow(RangeError);
      trace.end({ status: 200 });
    });

    it("lets later notes win field by field, and an unknown one hide nothing", async () => {
      const trace = telemetry.begin(request());
      trace.note({ model: "m-first", provider: "kept", inputTokens: 4711 });
      trace.note({ model: "m-second" });
      trace.note({ provider: undefined, inputTokens: undefined } as ports.RequestFacts);
      trace.end({ status: 200 });
      const told = await toldInTheEnd();
      for (const text of ["m-second", "kept", "4711"]) expect(told).toContain(text);
      expect(told).not.toContain("m-first");
    });

    it("tells a request once, by its first end", async () => {
      const trace = telemetry.begin(request({ id: "req_once" }));
      trace.end({ status: 201 });
      trace.end({ status: 502, error: "too_late" });
      trace.note({ model: "m-late" });
      const told = await toldInTheEnd();
      expect(told.split("req_once")).toHaveLength(2);
      expect(told).not.toContain("too_late");
      expect(told).not.toContain("m-late");
    });

    it("tells the error code of a request that failed", async () => {
      telemetry.begin(request()).end({ status: 404, error: "guest_unknown" });
      expect(await toldInTheEnd()).toContain("guest_unknown");
    });

    it("tells an error that was noted in place of the end's: why an answer that began well did not end so", async () => {
      const trace = telemetry.begin(request());
      trace.note({ error: "upstream_broken" });
      trace.note({ model: "m-late" });
      trace.end({ status: 200, error: "answer_broken" });
      const told = await toldInTheEnd();
      expect(told).toContain("upstream_broken");
      expect(told).not.toContain("answer_broken");
    });

    it("runs every kind of work, gives what it returns or throws, and counts its first end", async () => {
      const works: readonly ports.WorkBegin[] = [
        { kind: "turn", agent: "a", run: "run_1", turn: "turn_1", traceparent: undefined },
        { kind: "turn", agent: "a", run: "run_1", turn: "turn_1", traceparent: "not a trace context" },
        { kind: "tool", tool: "t".repeat(5000), source: "s" },
        { kind: "run", workflow: "w", run: "wrun_1", attempt: 1, traceparent: undefined },
        { kind: "node", type: "http", node: "n", run: "wrun_1", attempt: 2 },
      ];
      for (const begin of works) {
        const work = telemetry.work(begin);
        expect(work.run(() => 7)).toBe(7);
        await expect(work.run(async () => "later")).resolves.toBe("later");
        expect(() =>
          work.run(() => {
            throw new RangeError("of the work");
          }),
        ).toThrow(RangeError);
        work.end({ error: "failed" });
        work.end();
      }
      telemetry.log.info("still here");
      expect(await toldInTheEnd()).toContain("still here");
    });

    it("has no trace context, or a valid one", () => {
      const work = telemetry.work({ kind: "tool", tool: "t", source: "s" });
      const traceparent = work.run(() => telemetry.traceparent());
      if (traceparent !== undefined) expect(traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/);
      work.end();
      expect(telemetry.traceparent()).toBeUndefined();
    });

    it("accepts model calls without a request, with any names", async () => {
      const call = { source: "agent", provider: "main", providerType: "vendor", model: "m".repeat(5000), durationMs: 12.5 };
      telemetry.modelCall(call);
      telemetry.modelCall({ ...call, durationMs: -1, inputTokens: 0, outputTokens: undefined, error: "ModelTimeout" });
      telemetry.log.info("still here");
      expect(await toldInTheEnd()).toContain("still here");
    });

    it("refuses a gauge whose name means something else, until the first one is removed", () => {
      const gauge = { name: "rooms_free", help: "Rooms that are free", read: () => 3 };
      const other = { ...gauge, help: "Rooms without a bill" };
      const remove = telemetry.gauge(gauge);
      expect(() => telemetry.gauge(other)).toThrow("rooms_free");
      telemetry.gauge(gauge);
      remove();
      // A second call leaves the other gauge.
      remove();
      expect(() => telemetry.gauge(other)).toThrow("rooms_free");
    });

    it("keeps requests that run side by side apart", async () => {
      const [one, two] = [telemetry.begin(request({ id: "req_a" })), telemetry.begin(request({ id: "req_b" }))];
      one.note({ model: "m-one" });
      two.end({ status: 200 });
      one.end({ status: 200 });
      const told = await toldInTheEnd();
      expect(told.indexOf("req_b")).toBeLessThan(told.indexOf("req_a"));
      expect(told.indexOf("m-one")).toBeGreaterThan(told.indexOf("req_b"));
    });

    it("reads no header but those of trace context, and tells none", async () => {
      const asked: string[] = [];
      const header = (key: string): string | undefined => {
        asked.push(key);
        return key === "authorization" || key === "cookie" ? SECRET : undefined;
      };
      telemetry.begin(request({ header })).end({ status: 200 });
      expect(await toldInTheEnd()).not.toContain(SECRET);
      expect(asked.filter((key) => !/^(trace|b3|x-b3|baggage|uber-|x-cloud-trace|x-amzn-trace)/.test(key))).toEqual([]);
    });
  });
}
