import { getEventListeners } from "node:events";
import { Readable } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { describeBreaks } from "./models/breaks.ts";
import { describeDiscovery } from "./models/discovery.ts";
import { describeConnecting, describePatience } from "./models/patience.ts";
import { RULES } from "./models/rules.ts";
import {
  createSubjects,
  failureOf,
  fedBody,
  type MakeModels,
  type OpenSubject,
  readBytes,
  sampleRequest,
} from "./models/subject.ts";
import { describeTransfer } from "./models/transfer.ts";

export type { MakeModels, ModelsUnderTest, ProviderSetting } from "./models/subject.ts";

/** Options of `modelsConformance`. */
export interface ModelsConformanceOptions {
  /**
   * `http`: it calls the suite's upstream at `setting.baseUrl`, and passes bytes. `converted`: it calls the same upstream in a protocol of its
   * own. `none`: it answers by itself; only what holds for all is tested.
   */
  readonly upstream: "http" | "converted" | "none";
  /** It takes `models: "discover"`, and believes a list that it read for that long. */
  readonly discovers?: { readonly freshMs: number };
  /**
   * Its calls go through a `fetch` function. Such a function decodes encoded answers, and has no separate timeout for connecting: the
   * suite tests neither `connectMs` nor the bytes of encoded answers.
   */
  readonly over?: "fetch";
}

/**
 * The law of the models port, as vitest tests. `make` is called once per test with what the provider is to be. The suite brings
 * the upstream and scripts it; an adapter that has a clock of its own says with `pass` how a test moves it.
 */
export function modelsConformance(name: string, make: MakeModels, { upstream, discovers, over }: ModelsConformanceOptions): void {
  describeSuite(`models port: ${name}`, () => {
    const subjects = createSubjects(make);
    afterEach(() => subjects.close());

    describeEveryProvider(subjects.open);
    if (upstream === "none") return;
    if (upstream === "http") {
      describeTransfer(subjects.open, { isDecoded: over === "fetch" });
      describeBreaks(subjects.open);
      describePatience(subjects.open);
      if (over !== "fetch") describeConnecting(subjects.open);
    }
    if (discovers) describeDiscovery(subjects.open, discovers.freshMs);
  });
}

function describeEveryProvider(open: OpenSubject): void {
  describe("any provider", () => {
    it("names its id and its protocol", async () => {
      const { provider } = await open();
      expect(provider.id, RULES.named).toMatch(/./);
      expect(provider.type, RULES.named).toMatch(/./);
      expect(["messages", "chat-completions"]).toContain(provider.protocol);
    });

    it("lists names of models, each once", async () => {
      const { provider } = await open();
      const listed = await provider.listModels();
      expect(listed.length, RULES.models).toBeGreaterThan(0);
      expect(new Set(listed).size, RULES.models).toBe(listed.length);
      for (const model of listed) expect(model).toMatch(/./);
      expect(await provider.listModels(new AbortController().signal)).toEqual(listed);
    });

    it("answers a call with a status, headers by lowercase name, and a body of bytes", async () => {
      const { provider, send } = await open();
      const model = (await provider.listModels())[0];
      const answer = await send({ body: sampleRequest(provider, { model }) });
      expect(answer.status, RULES.answered).toBe(200);
      expect(Object.keys(answer.headers).filter((header) => header !== header.toLowerCase())).toEqual([]);
      expect(answer.headers["content-type"], RULES.headers).toMatch(/^application\/json/);
      expect(answer.body, RULES.bytes).toBeInstanceOf(Readable);
      expect(JSON.parse((await readBytes(answer.body)).toString("utf8"))).toMatchObject({ model });
    });

    it("takes a request as bytes, as a stream with its length, and as one without", async () => {
      const { provider, send } = await open();
      const request = sampleRequest(provider, { model: (await provider.listModels())[0] });
      const half = request.length >> 1;
      for (const length of [request.length, undefined]) {
        const body = fedBody(request.subarray(0, half), request.subarray(half));
        body.push(null);
        const answer = await send({ body, ...(length !== undefined && { length }) });
        expect(answer.status, RULES.answered).toBe(200);
        expect((await readBytes(answer.body)).length).toBeGreaterThan(0);
      }
    });

    it("streams server-sent events where the request asks for them", async () => {
      const { provider, send } = await open();
      const answer = await send({ body: sampleRequest(provider, { model: (await provider.listModels())[0], stream: true }) });
      expect(answer.headers["content-type"], RULES.headers).toMatch(/^text\/event-stream/);
      expect((await readBytes(answer.body)).toString("utf8")).toMatch(/^data: ?\{/m);
    });

    it("fails with the reason of a signal that has aborted, and lets go of the request's body", async () => {
      const { send } = await open();
      const reason = new Error("the caller left");
      const body = fedBody("{");
      expect(await failureOf(send({ body }, AbortSignal.abort(reason))), RULES.signalReason).toBe(reason);
      expect(body.destroyed, RULES.bodyReleased).toBe(true);
    });

    it("fails with the signal's reason while the request's body is still coming, and lets go of it", async () => {
      const { send } = await open();
      const leaving = new AbortController();
      const body = fedBody("{");
      const sending = send({ body }, leaving.signal);
      const reason = new Error("the caller left");
      leaving.abort(reason);
      expect(await failureOf(sending), RULES.signalReason).toBe(reason);
      expect(body.destroyed, RULES.bodyReleased).toBe(true);
    });

    it("leaves no listener on a signal that stays quiet, and minds no abort after the end", async () => {
      const { send } = await open();
      const { signal, abort } = abortable();
      const answer = await send({}, signal);
      const text = await readBytes(answer.body);
      expect(getEventListeners(signal, "abort"), RULES.listeners).toHaveLength(0);
      abort();
      expect(text.length).toBeGreaterThan(0);
    });

    it("continues serving after an answer that was not read to its end", async () => {
      const { provider, send } = await open();
      const answer = await send({ body: sampleRequest(provider, { stream: true }) });
      answer.body.destroy();
      expect((await send()).status, RULES.servesOn).toBe(200);
    });

    it("redacts nothing from honest words", async () => {
      const { provider } = await open();
      for (const text of ["", "The model is overloaded. Try again in 20 s.", 'é\u{1f680} {"a":"\\u0000"}']) {
        expect(provider.redact(text), RULES.redacts).toBe(text);
      }
    });
  });
}

function abortable(): { readonly signal: AbortSignal; abort(): void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
