import { setTimeout as sleep } from "node:timers/promises";
import type { Adapter, ports } from "@portico/core";
import { afterEach, describe, expect, it } from "vitest";
import { collectMessagesStream } from "../harness/messages-stream-grammar.ts";
import { describeSuite } from "./describe-suite.ts";
import { RULES } from "./models/rules.ts";
import { countedBody, failureOf, pieces, readBytes, sampleRequest } from "./models/subject.ts";
import { modelsConformance } from "./models.ts";
import { openAdapter } from "./open-adapter.ts";

/**
 * What the provider's service does with each later call. `answer`: says the text of `OWN_ANSWER` and counts its tokens. `refuse`: refuses the
 * call, with words that contain the first of the hidden values. `break`: says the text, and closes the connection before its answer is
 * complete. `hold`: says nothing, and keeps the call open. `endless`: says the text again and again until its caller leaves. `down`: accepts no
 * connections.
 */
export type OwnServicePlay = "answer" | "refuse" | "break" | "hold" | "endless" | "down";

/** The text of the service's answers. */
export const OWN_ANSWER = 'Hello. Here is \u{1f680}, "quoted" and\nin two lines.';

/** A provider with a protocol of its own, in front of a service that the test plays. */
export interface OwnModelsUnderTest {
  readonly adapter: Adapter<typeof ports.models>;
  /** Adapters that fill what the adapter needs. */
  readonly others?: readonly Adapter[];
  /** Values that no answer and no error may show: the credential, the address of the service. */
  readonly hidden: readonly [string, ...string[]];
  /** Says what the service does with each later call. It begins with `answer`. */
  play(what: OwnServicePlay): void | Promise<void>;
  /** Calls that the service has in progress. */
  open(): number;
  /** Ends the service. */
  close?(): void | Promise<void>;
}

/** Makes the adapter and its service. */
export type MakeOwnModels = () => OwnModelsUnderTest | Promise<OwnModelsUnderTest>;

/**
 * The law of a provider with a protocol of its own, as vitest tests: that of every provider, and what holds because the test plays the
 * provider's service. `make` is called once per test.
 */
export function ownModelsConformance(name: string, make: MakeOwnModels): void {
  const undo: (() => void | Promise<void>)[] = [];
  const made = async () => {
    const subject = await make();
    undo.push(() => subject.close?.());
    return subject;
  };
  const open = async (play: OwnServicePlay = "answer"): Promise<OwnSubject> => {
    const subject = await made();
    const { port: provider, close } = await openAdapter(subject.adapter, subject.others);
    undo.push(close);
    const model = (await provider.listModels())[0];
    await subject.play(play);
    const send: OwnSubject["send"] = (more = {}, signal = new AbortController().signal) => {
      const body = more instanceof Uint8Array ? more : sampleRequest(provider, { model, ...more });
      return provider.send({ headers: {}, query: "", body }, signal);
    };
    return { subject, provider, send };
  };
  const close = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };

  modelsConformance(name, async () => ({ ...(await made()), pass: async () => {} }), { upstream: "none" });
  describeSuite(`provider with its own protocol: ${name}`, () => {
    afterEach(close);
    describeAnswers(open);
    describeRequests(open);
    describeEnds(open);
  });
  // The suite of every provider closes only the adapters.
  afterEach(close);
}

interface OwnSubject {
  readonly subject: OwnModelsUnderTest;
  readonly provider: ports.ModelProvider;
  send(request?: object | Uint8Array, signal?: AbortSignal): Promise<ports.ModelAnswer>;
}
type Open = (play?: OwnServicePlay) => Promise<OwnSubject>;

const OWN_RULES = {
  asMessages: "An own provider shows itself as a provider of the protocol `messages`",
  complete: "An answer has the whole text of the service, in its order",
  counted: "An answer has the tokens that the service counted",
  invalid: "An invalid request is refused with status 400 and does not reach the service",
  named: "A request with a part that the provider cannot carry is refused with status 400, and the refusal names the part",
  notEnded: "An answer that broke never ends as a complete answer does",
  refused: "A refusal of the service has a status of 400 or more, and the words of the service",
  letGo: "The provider ends its call of the service when its caller leaves",
} as const;

function describeAnswers(open: Open): void {
  describe("answers", () => {
    it("are of the Messages protocol, whole", async () => {
      const { provider, send } = await open();
      expect(provider.protocol, OWN_RULES.asMessages).toBe("messages");
      const { status, body } = await send();
      expect(status, RULES.answered).toBe(200);
      const { content, usage } = JSON.parse((await readBytes(body)).toString()) as WholeMessage;
      expect(content.map(({ text }) => text ?? "").join(""), OWN_RULES.complete).toBe(OWN_ANSWER);
      expect(usage.output_tokens, OWN_RULES.counted).toBeGreaterThan(0);
    });

    it("are of the Messages protocol, as streams", async () => {
      const { send } = await open();
      const { body } = await send({ stream: true });
      const { content, usage, error } = collectMessagesStream(await readBytes(body));
      expect(error).toBeUndefined();
      expect(content.map(({ text }) => text ?? "").join(""), OWN_RULES.complete).toBe(OWN_ANSWER);
      expect(usage["output_tokens"], OWN_RULES.counted).toBeGreaterThan(0);
    });

    it.each([true, false])("tell the service's refusal without the provider's secrets (stream: %s)", async (stream) => {
      const { subject, provider, send } = await open("refuse");
      const { status, body } = await send({ stream });
      expect(status, OWN_RULES.refused).toBeGreaterThanOrEqual(400);
      const text = (await readBytes(body)).toString();
      const { type, error } = JSON.parse(text) as { type: string; error: { message: string } };
      expect([type, error.message.length > 0], OWN_RULES.refused).toEqual(["error", true]);
      for (const hidden of subject.hidden) expect(text, RULES.discreet).not.toContain(hidden);
      expect(provider.redact(`a ${subject.hidden[0]} b`), RULES.redacts).not.toContain(subject.hidden[0]);
    });

    it("are complete for many calls at once", async () => {
      const { send } = await open();
      const answers = await Promise.all(Array.from({ length: 20 }, async () => readBytes((await send({ stream: true })).body)));
      for (const bytes of answers)
        expect(
          collectMessagesStream(bytes)
            .content.map(({ text }) => text)
            .join(""),
          OWN_RULES.complete,
        ).toBe(OWN_ANSWER);
    });
  });
}

interface WholeMessage {
  readonly content: readonly { readonly text?: string }[];
  readonly usage: { readonly output_tokens: number };
}

function describeRequests(open: Open): void {
  describe("requests", () => {
    it.each(["", "{", "[]", "null", '"text"', '{"messages":[]}', '{"model":"m"}', '{"model":"m","messages":{}}', "\xff"])(
      "are refused if they are not Messages requests: %j",
      async (text) => {
        const { subject, send } = await open("hold");
        const { status, body } = await send(Buffer.from(text, "latin1"));
        expect(status, OWN_RULES.invalid).toBe(400);
        expect(JSON.parse((await readBytes(body)).toString()), OWN_RULES.invalid).toMatchObject({
          type: "error",
          error: { type: "invalid_request_error" },
        });
        expect(subject.open(), OWN_RULES.invalid).toBe(0);
      },
    );

    it("are not held in memory if they are too large, and their stream is let go", async () => {
      const { provider } = await open();
      const { body, taken } = countedBody(1024 * 1024 * 1024);
      const answer = await provider.send({ headers: {}, query: "", body }, new AbortController().signal);
      expect(answer.status).toBe(413);
      expect(body.destroyed, RULES.bodyReleased).toBe(true);
      expect(taken()).toBeLessThan(512 * 1024 * 1024);
    });

    it("are refused or carried with each of their parts, never answered without one", async () => {
      const { send } = await open();
      const image = { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } };
      const tool = { name: "look", description: "Looks", input_schema: { type: "object", properties: {} } };
      const requests = [
        { path: "messages.0.content.0", request: { messages: [{ role: "user", content: [image] }] } },
        { path: "tools", request: { tools: [tool] } },
      ];
      for (const { path, request } of requests) {
        const { status, body } = await send(request);
        const text = (await readBytes(body)).toString();
        if (status === 200) continue;
        expect(status, OWN_RULES.named).toBe(400);
        expect(text, OWN_RULES.named).toContain(path);
      }
    });
  });
}

/** A picture of one pixel. */
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

function describeEnds(open: Open): void {
  describe("ends", () => {
    const reason = new Error("the caller left");

    it.each([true, false])("never take a broken answer for a complete one (stream: %s)", async (stream) => {
      const { subject, send } = await open("break");
      let text = "";
      let status = 0;
      const failure = await failureOf(
        send({ stream }).then(async (answer) => {
          ({ status } = answer);
          text = (await readBytes(answer.body)).toString();
        }),
      );
      if (!stream && !failure) expect(status, OWN_RULES.notEnded).toBeGreaterThanOrEqual(500);
      expect(text, OWN_RULES.notEnded).not.toContain("message_stop");
      if (failure) expect((failure as Error).name, RULES.fails("ModelUnreachable")).toBe("ModelUnreachable");
      else expect(text, OWN_RULES.notEnded).toContain('"error"');
      for (const hidden of subject.hidden) expect(`${text}${String(failure)}`, RULES.discreet).not.toContain(hidden);
    });

    it("are ModelUnreachable if the service cannot be reached", async () => {
      const { subject, send } = await open("down");
      const failure = await failureOf(send());
      expect((failure as Error | undefined)?.name, RULES.fails("ModelUnreachable")).toBe("ModelUnreachable");
      for (const hidden of subject.hidden) expect(String(failure), RULES.discreet).not.toContain(hidden);
    });

    it.each([true, false])("have the reason of a caller that leaves before the answer (stream: %s)", async (stream) => {
      const { subject, send } = await open("hold");
      const leaving = new AbortController();
      const sending = failureOf(send({ stream }, leaving.signal));
      await until(() => subject.open() > 0);
      leaving.abort(reason);
      expect(await sending, RULES.signalReason).toBe(reason);
      expect(await until(() => subject.open() === 0), OWN_RULES.letGo).toBe(true);
    });

    it("have the reason of a caller that leaves in the middle of the answer", async () => {
      const { subject, send } = await open("endless");
      const leaving = new AbortController();
      const { body } = await send({ stream: true }, leaving.signal);
      await pieces(body)();
      const reading = failureOf(readBytes(body));
      leaving.abort(reason);
      expect(await reading, RULES.signalReason).toBe(reason);
      expect(await until(() => subject.open() === 0), OWN_RULES.letGo).toBe(true);
    });

    it("let go of the service when the answer's reader leaves", async () => {
      const { subject, send } = await open("endless");
      const { body } = await send({ stream: true });
      body.destroy();
      expect(await until(() => subject.open() === 0), OWN_RULES.letGo).toBe(true);
    });

    it("are followed by calls that are answered", async () => {
      const { subject, send } = await open("break");
      await send({ stream: true })
        .then(({ body }) => readBytes(body))
        .catch(() => {});
      await subject.play("answer");
      expect((await send()).status, RULES.servesOn).toBe(200);
    });
  });
}

/** Whether it becomes true. Services see that a connection was closed a moment later. */
async function until(isTrue: () => boolean): Promise<boolean> {
  for (let tries = 0; tries < 2_000 && !isTrue(); tries++) await sleep(5);
  return isTrue();
}
