import type { ports } from "@portico/core";
import type { Redis } from "ioredis";
import { whenReady } from "../../redis/server.ts";
import { toSigned } from "../../redis/signed-text.ts";
import { type ChannelCommands, channelCommands, channelOf } from "./channels.ts";
import { toWire } from "./envelope.ts";

/** Limits what waits while Redis is slow. Further messages are lost. */
const WAITING_BYTES = 8 * 1024 * 1024;
const WAITING_MESSAGES = 50_000;
/** Topics that lost messages, by name. If more did, all subscriptions are told. */
const DOUBTFUL_TOPICS = 10_000;
/** Pause after Redis refused a message. */
const RETRY_MS = 1000;

interface Waiting {
  readonly topic: string;
  readonly wire: string;
}

/** The options of a publisher. */
export interface PublisherGiven {
  readonly connection: Redis;
  readonly prefix: string;
  /** The ID of this process. */
  readonly id: string;
  readonly signing: ports.Signing;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
}

/**
 * Sends messages in order, many at a time. Holds a bounded number of them, and sends none twice. It remembers the topics of lost
 * messages, and tells their subscriptions when Redis is available again.
 */
export class Publisher {
  readonly #given: PublisherGiven;
  #commands: ChannelCommands | undefined;
  #sequence = 0;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #doubtful = new Set<string>();
  #isAllDoubtful = false;
  #hasLost = false;
  #sending: Promise<void> | undefined;
  #pause: ports.Timer | undefined;
  #isClosed = false;

  constructor(given: PublisherGiven) {
    this.#given = given;
    given.connection.on("close", () => this.#stop());
    whenReady(given.connection, () => void this.#start());
  }

  /** Undefined: a message that is lost, which the topic's subscriptions are told in its place. */
  publish(topic: string, text: string | undefined): void {
    if (this.#isClosed) return;
    const wire = this.#toWire(text);
    const isFull = this.#waitingBytes + wire.length > WAITING_BYTES || this.#waiting.length >= WAITING_MESSAGES;
    if (isFull || this.#given.connection.status !== "ready") return this.#lose(topic);
    this.#waiting.push({ topic, wire });
    this.#waitingBytes += wire.length;
    this.#send();
  }

  /** Waits for the messages that were published. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#pause?.cancel();
    await this.#sending;
  }

  async #start(): Promise<void> {
    const commands = await channelCommands(this.#given.connection).catch(() => undefined);
    // Another connection may have taken its place meanwhile.
    if (this.#given.connection.status !== "ready" || !commands) return;
    this.#commands = commands;
    this.#send();
  }

  /** Messages that waited for the lost connection are dropped: hints are of no use later. */
  #stop(): void {
    this.#commands = undefined;
    for (const { topic } of this.#waiting) this.#lose(topic);
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  #lose(topic: string): void {
    if (!this.#hasLost) this.#given.log.warn("The bus loses messages: Redis is unavailable or too slow");
    this.#hasLost = true;
    if (this.#doubtful.size < DOUBTFUL_TOPICS) this.#doubtful.add(topic);
    else this.#isAllDoubtful = true;
  }

  #send(): void {
    // After the current turn of the event loop, so that its messages leave in one packet.
    this.#sending ??= new Promise<void>((resolve) => setImmediate(resolve))
      .then(() => this.#sendAll())
      .finally(() => void (this.#sending = undefined));
  }

  async #sendAll(): Promise<void> {
    while (this.#commands && !this.#pause) {
      const batch = this.#takeBatch();
      if (batch.length === 0) break;
      const failed = await this.#sendBatch(batch, this.#commands);
      for (const topic of failed) {
        if (topic === "") this.#isAllDoubtful = true;
        else this.#lose(topic);
      }
      if (failed.length > 0) this.#rest();
    }
    if (this.#doubtful.size === 0 && !this.#isAllDoubtful) this.#hasLost = false;
  }

  /** Everything that waits, and a note for each topic that lost messages. */
  #takeBatch(): readonly Waiting[] {
    const note = (topic: string): Waiting => ({ topic, wire: this.#toWire(undefined) });
    const topics = this.#isAllDoubtful ? [""] : [...this.#doubtful];
    const batch = [...this.#waiting, ...topics.map(note)];
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#doubtful = new Set();
    this.#isAllDoubtful = false;
    return batch;
  }

  /** The topics of the messages that may not have arrived. */
  async #sendBatch(batch: readonly Waiting[], { publish }: ChannelCommands): Promise<readonly string[]> {
    const { connection, prefix, signing } = this.#given;
    const sign = async ({ topic, wire }: Waiting) => {
      const channel = channelOf(prefix, topic);
      return [channel, await toSigned(signing, channel, wire)] as const;
    };
    const send = async (signed: readonly (readonly [string, string])[]) => {
      const pipeline = connection.pipeline();
      for (const [channel, wire] of signed) pipeline[publish](channel, wire);
      return pipeline.exec();
    };
    const results = await Promise.all(batch.map(sign))
      .then(send)
      .catch(() => null);
    return batch.filter((_, at) => !results?.[at] || results[at][0]).map(({ topic }) => topic);
  }

  #toWire(text: string | undefined): string {
    const { id, clock } = this.#given;
    return toWire({ from: id, sequence: ++this.#sequence, at: Math.max(0, Math.floor(clock.now())), text });
  }

  #rest(): void {
    this.#pause ??= this.#given.clock.after(RETRY_MS, () => {
      this.#pause = undefined;
      this.#send();
    });
  }
}
