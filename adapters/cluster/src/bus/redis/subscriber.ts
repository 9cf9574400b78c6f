import type { ports } from "@portico/core";
import type { Redis } from "ioredis";
import { type RedisServer, whenReady } from "../../redis/server.ts";
import { fromSigned } from "../../redis/signed-text.ts";
import type { Topics } from "@portico/adapters/bus/topics";
import { type ChannelCommands, channelCommands, channelOf } from "./channels.ts";
import { type Envelope, fromWire, MOST_CHARACTERS } from "./envelope.ts";

/** Channels per command, so that no command is too large. */
const PAGE = 500;
/** Each time, a lost connection is noticed, and channels that Redis refused are tried again. */
const HEARTBEAT_MS = 2000;
/** Publishers whose last message is remembered. More than processes live at once. */
const KNOWN_PUBLISHERS = 1000;
/** The first message of a publisher is refused if it is older: it may be a copy from before this process started. Clocks may differ. */
const FIRST_WITHIN_MS = 2 * 60 * 60 * 1000;
/** Messages that wait for their signature to be checked. Further ones are lost. */
const WAITING_MESSAGES = 50_000;
/** The same for their characters. One message can have a million. */
const WAITING_CHARACTERS = 32 * 1024 * 1024;

/** A topic with subscriptions in this process. */
interface Wanted {
  /** Of the connection on which the channel was asked for. */
  epoch: number;
  isActive: boolean;
  /** It was active on an earlier connection. */
  hasBeenActive: boolean;
  /** Told once: whether it became active. */
  readonly told: ((isActive: boolean) => void)[];
}

/** The options of a subscriber. */
export interface SubscriberGiven {
  /** Only for this subscriber. */
  readonly connection: Redis;
  readonly prefix: string;
  /** The ID of this process: its own messages are told without Redis. */
  readonly id: string;
  readonly topics: Topics;
  readonly signing: ports.Signing;
  readonly clock: ports.Clock;
  readonly refuse: RedisServer["refuse"];
}

/** Keeps the channels of this process's topics subscribed, over any number of connections. */
export class Subscriber {
  readonly #given: SubscriberGiven;
  readonly #wanted = new Map<string, Wanted>();
  readonly #lastOf = new Map<string, number>();
  #commands: ChannelCommands | undefined;
  #epoch = 0;
  #heartbeat: ports.Timer;
  /** The check of the message that arrived last. */
  #hearing: Promise<void> = Promise.resolve();
  #unheard = 0;
  #unheardCharacters = 0;

  constructor(given: SubscriberGiven) {
    this.#given = given;
    const { connection, clock } = given;
    // Its messages are for all subscriptions.
    this.#wanted.set("", newWanted());
    connection.on("close", () => this.#stop());
    for (const event of ["message", "smessage"]) connection.on(event, (channel, signed) => this.#receive(channel, signed));
    whenReady(connection, () => void this.#start());
    const beat = (): void => {
      this.#heartbeat = clock.after(HEARTBEAT_MS, beat);
      if (!this.#commands) return;
      // The connection ends if there is no answer.
      connection.ping().catch(() => {});
      this.#subscribe([...this.#wanted.keys()]);
    };
    this.#heartbeat = clock.after(HEARTBEAT_MS, beat);
  }

  /** Subscribe the topic's channel. Resolves with whether it became active before `unwant` or `close`. */
  want(topic: string): Promise<boolean> {
    const wanted = this.#wanted.get(topic) ?? newWanted();
    if (wanted.isActive) return Promise.resolve(true);
    this.#wanted.set(topic, wanted);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    wanted.told.push(resolve);
    this.#subscribe([topic]);
    return promise;
  }

  unwant(topic: string): void {
    const wanted = this.#wanted.get(topic);
    if (!wanted) return;
    this.#wanted.delete(topic);
    tellAll(wanted, false);
    if (wanted.epoch !== this.#epoch || !this.#commands) return;
    const { connection, prefix } = this.#given;
    connection[this.#commands.unsubscribe](channelOf(prefix, topic)).catch(() => {});
  }

  close(): void {
    this.#heartbeat.cancel();
    this.#given.connection.disconnect();
    for (const wanted of this.#wanted.values()) tellAll(wanted, false);
    this.#wanted.clear();
  }

  async #start(): Promise<void> {
    const epoch = ++this.#epoch;
    const commands = await channelCommands(this.#given.connection).catch(() => undefined);
    if (!commands || epoch !== this.#epoch) return;
    this.#commands = commands;
    this.#subscribe([...this.#wanted.keys()]);
  }

  #stop(): void {
    this.#epoch++;
    this.#commands = undefined;
    for (const wanted of this.#wanted.values()) wanted.isActive = false;
  }

  /** Ask for the channels that were not asked for on this connection. */
  #subscribe(topics: readonly string[]): void {
    if (!this.#commands) return;
    const { connection, prefix } = this.#given;
    const { subscribe } = this.#commands;
    const epoch = this.#epoch;
    const missing = topics.flatMap((topic) => {
      const wanted = this.#wanted.get(topic);
      return wanted && wanted.epoch !== epoch ? [{ topic, wanted }] : [];
    });
    for (let from = 0; from < missing.length; from += PAGE) {
      const page = missing.slice(from, from + PAGE);
      for (const { wanted } of page) wanted.epoch = epoch;
      connection[subscribe](...page.map(({ topic }) => channelOf(prefix, topic))).then(
        () => page.forEach(({ topic, wanted }) => this.#activate(topic, wanted, epoch)),
        () => page.forEach(({ wanted }) => void (wanted.epoch = -1)),
      );
    }
  }

  #activate(topic: string, wanted: Wanted, epoch: number): void {
    if (epoch !== this.#epoch || this.#wanted.get(topic) !== wanted) return;
    const hadGap = wanted.hasBeenActive;
    wanted.isActive = wanted.hasBeenActive = true;
    if (hadGap && topic !== "") this.#given.topics.tell(topic, undefined);
    tellAll(wanted, true);
  }

  /** Checks messages in their order. Other programs can publish, too. */
  #receive(channel: string, signed: string): void {
    const topic = channel.slice(channelOf(this.#given.prefix, "").length);
    if (signed.length > MOST_CHARACTERS) return this.#given.refuse("bus");
    const isFull = this.#unheard >= WAITING_MESSAGES || this.#unheardCharacters + signed.length > WAITING_CHARACTERS;
    if (isFull) return this.#tell(topic, undefined);
    this.#unheard++;
    this.#unheardCharacters += signed.length;
    this.#hearing = this.#hearing
      .then(() => this.#hear(channel, topic, signed))
      .catch(() => this.#given.refuse("bus"))
      .finally(() => {
        this.#unheard--;
        this.#unheardCharacters -= signed.length;
      });
  }

  async #hear(channel: string, topic: string, signed: string): Promise<void> {
    const wire = await fromSigned(this.#given.signing, channel, signed);
    const envelope = wire === undefined ? undefined : fromWire(wire);
    if (!envelope) return this.#given.refuse("bus");
    if (envelope.from !== this.#given.id && this.#isNext(envelope)) this.#tell(topic, envelope.text);
  }

  #tell(topic: string, text: string | undefined): void {
    if (topic !== "") return this.#given.topics.tell(topic, text);
    for (const each of this.#given.topics.names) this.#given.topics.tell(each, undefined);
  }

  /** False for a copy, and for a message that was overtaken: its publisher reconnected, and counts it as lost. */
  #isNext({ from, sequence, at }: Envelope): boolean {
    const last = this.#lastOf.get(from);
    if (last === undefined) {
      if (Math.abs(this.#given.clock.now() - at) > FIRST_WITHIN_MS) {
        this.#given.refuse("bus");
        return false;
      }
      if (this.#lastOf.size >= KNOWN_PUBLISHERS) this.#lastOf.delete(this.#lastOf.keys().next().value!);
    } else if (sequence <= last) return false;
    this.#lastOf.set(from, sequence);
    return true;
  }
}

function newWanted(): Wanted {
  return { epoch: -1, isActive: false, hasBeenActive: false, told: [] };
}

function tellAll(wanted: Wanted, isActive: boolean): void {
  for (const tell of wanted.told.splice(0)) tell(isActive);
}
