import { definePort, type Port } from "../grammar/port.ts";

/**
 * Hints between all processes that serve one instance. A message goes to every subscription of its topic, in every process: in
 * order for each publisher, at most once, and it is not kept. Messages can be lost. A subscriber that must not miss anything reads
 * a store (the log, the records or the engine's journal), and uses messages to learn early what to read.
 */
export interface Bus {
  /**
   * Send a message to all subscriptions of a topic, also to those of this process, and never within this call. Returns at once,
   * and does not throw if the message cannot be sent: the message is lost then. A message larger than `BUS_MESSAGE_BYTES` is
   * lost. Does nothing after closing. Throws TypeError for an invalid topic, and for a message that JSON cannot represent; without
   * any receiver, it may leave the message unread.
   */
  publish(topic: string, message: unknown, options?: PublishOptions): void;
  /**
   * Hear the messages of a topic. Throws TypeError for an invalid topic: a topic has 1-512 well-formed characters without U+0000.
   */
  subscribe(topic: string, listener: BusListener): BusSubscription;
}

/** Options of `publish`. */
export interface PublishOptions {
  /** Leave out the subscriptions of this process. For publishers that tell their own process directly. Default: false. */
  readonly toOthers?: boolean;
}

/**
 * The callbacks of a subscription. Both functions must return soon. If one throws, or returns a promise that rejects, the error is
 * logged.
 */
export interface BusListener {
  /** A message as JSON represents it. Other listeners get the same object: it must not be changed. */
  received(message: unknown): unknown;
  /**
   * Messages of the topic may have been lost, for example because the connection was lost and is established again. All messages
   * after this call arrive again: read now what messages would have told.
   */
  missed(): unknown;
}

/** One subscription. Any number of subscriptions may exist for one topic. */
export interface BusSubscription {
  /**
   * Resolves with true when the subscription is active: messages that any process publishes from then on arrive. Read stores
   * after this. Waits while the bus is unavailable. Resolves with false if the subscription, or the bus, was closed before.
   */
  readonly active: Promise<boolean>;
  /** End the subscription. The listener is not called any more. */
  close(): void;
}

/** Maximum size of a message as JSON in UTF-8. */
export const BUS_MESSAGE_BYTES = 1_048_576;

/** The port of the bus. */
export const bus: Port<Bus> = definePort<Bus>("bus");
