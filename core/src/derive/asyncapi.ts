import type { ChannelContract } from "../grammar/channel.ts";
import type { Area } from "../ports/areas.ts";
import type { Events, RouteContract, Schema } from "../grammar/contract.ts";
import { type DocumentInfo, type JsonSchema, SchemaBook } from "./schema-book.ts";
import { type Security, type SecurityScheme, securitySchemesOf } from "./security-schemes.ts";

export type { DocumentInfo } from "./schema-book.ts";
export type { Security, SecurityScheme } from "./security-schemes.ts";

/** Options of an AsyncAPI document. */
export interface AsyncAPIOptions {
  /** Only the areas of this surface. Default: all. */
  readonly surface?: string;
  /** How the credential behind each `auth` name is presented. */
  readonly security?: Security;
  /** How a client speaks on a realtime channel. Contracts do not say it, because the adapter chooses the transport. */
  readonly transport?: string;
}

/** The facts about an area that the document needs. */
export type DescribedArea = Pick<Area, "name" | "summary" | "contract" | "channels">;

/** An AsyncAPI 3.0.0 document, limited to the parts that Portico writes. */
export interface AsyncAPIDocument {
  readonly asyncapi: "3.0.0";
  readonly info: DocumentInfo;
  readonly defaultContentType: "application/json";
  readonly channels: Readonly<Record<string, ChannelItem>>;
  readonly operations: Readonly<Record<string, ChannelOperation>>;
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, object>>;
    readonly schemas: Readonly<Record<string, unknown>>;
    /** One per area. */
    readonly tags: Readonly<Record<string, { readonly name: string; readonly description?: string }>>;
  };
}

/** A channel of the document. */
export interface ChannelItem {
  /** A path of the surface. */
  readonly address: string;
  readonly title: string;
  readonly description?: string;
  readonly parameters?: Readonly<Record<string, object>>;
  readonly messages: Readonly<Record<string, Message>>;
  readonly "x-surface": string;
}

/** A message of the document: one event. */
export interface Message {
  /** Name of the event. */
  readonly name: string;
  readonly summary?: string;
  readonly payload: JsonSchema;
}

/** An operation of the document: one event in one direction. */
export interface ChannelOperation {
  /** Direction as seen by the service: `send` is an event to the client. */
  readonly action: "send" | "receive";
  readonly channel: Reference;
  readonly summary: string;
  readonly tags: readonly Reference[];
  readonly messages: readonly Reference[];
  readonly security?: readonly Reference[];
  readonly bindings?: object;
}

interface Reference {
  readonly $ref: string;
}

const STREAM = "Server-sent events: each message is an event of its name, with the payload as its data.";
const BROKEN = "The stream breaks here, in the words of the area's errors.";

/**
 * The AsyncAPI 3.0 document of some areas: realtime channels, and routes that answer with server-sent events. Everything in it is
 * derived from contracts. Directions are those of the service, as AsyncAPI defines them.
 */
export function toAsyncAPI(info: DocumentInfo, areas: readonly DescribedArea[], options: AsyncAPIOptions = {}): AsyncAPIDocument {
  const book = new Book(options);
  const stands = ({ surface }: { readonly surface: string }) => surface === (options.surface ?? surface);
  for (const area of areas) {
    for (const [key, channel] of Object.entries(area.channels)) if (stands(channel)) book.addChannel(area, key, channel);
    for (const [key, route] of Object.entries(area.contract)) {
      if (stands(route) && route.success.kind === "events") book.addStream(area, key, route, route.success.events);
    }
  }
  return {
    asyncapi: "3.0.0",
    info,
    defaultContentType: "application/json",
    channels: book.channels,
    operations: book.operations,
    components: { securitySchemes: book.securitySchemes, schemas: book.schemas.shared, tags: book.tags },
  };
}

class Book {
  readonly tags: Record<string, { name: string; description?: string }> = {};
  readonly channels: Record<string, ChannelItem> = {};
  readonly operations: Record<string, ChannelOperation> = {};
  readonly securitySchemes: Record<string, object> = {};
  readonly schemas = new SchemaBook();
  readonly #options: AsyncAPIOptions;

  constructor(options: AsyncAPIOptions) {
    this.#options = options;
  }

  addChannel(area: DescribedArea, key: string, channel: ChannelContract): void {
    const id = `${area.name}.${key}`;
    const hello = { connect: channel.hello };
    this.channels[id] = {
      address: channel.path,
      title: channel.summary,
      ...(this.#options.transport !== undefined && { description: this.#options.transport }),
      messages: {
        ...this.#messages(id, hello, () => "What a client presents when it connects."),
        ...this.#messages(id, channel.receives),
        ...this.#messages(id, channel.sends),
      },
      "x-surface": channel.surface,
    };
    this.#operate(area, id, "connect", { action: "receive", summary: "A client connects" }, hello);
    this.#operate(area, id, "receive", { action: "receive", summary: "What clients may say" }, channel.receives);
    this.#operate(area, id, "send", { action: "send", summary: "What clients are told" }, channel.sends);
  }

  addStream(area: DescribedArea, key: string, route: RouteContract, events: Events): void {
    const id = `${area.name}.${key}`;
    const names = [...route.path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
    const broken: Message = { name: "error", summary: BROKEN, payload: {} };
    this.channels[id] = {
      address: route.path.replaceAll(/:(\w+)/g, "{$1}"),
      title: route.summary,
      description: STREAM,
      ...(names.length > 0 && { parameters: Object.fromEntries(names.map((name) => [name, {}])) }),
      messages: { error: broken, ...this.#messages(id, events) },
      "x-surface": route.surface,
    };
    const query = route.query && { query: this.schemas.of(`${id}.query`, route.query) };
    const schemes = securitySchemesOf(route.auth, this.#options.security);
    for (const [name, scheme] of Object.entries(schemes)) this.securitySchemes[name] = asyncScheme(scheme);
    const security = Object.keys(schemes).map((name) => ({ $ref: `#/components/securitySchemes/${name}` }));
    this.#operate(
      area,
      id,
      "send",
      {
        action: "send",
        summary: route.summary,
        ...(security.length > 0 && { security }),
        bindings: { http: { method: route.method, ...query, bindingVersion: "0.3.0" } },
      },
      { ...events, error: undefined },
    );
  }

  #operate(
    area: DescribedArea,
    id: string,
    verb: string,
    operation: Pick<ChannelOperation, "action" | "summary" | "security" | "bindings">,
    messages: object,
  ): void {
    this.tags[area.name] = { name: area.name, ...(area.summary !== undefined && { description: area.summary }) };
    const channel = `#/channels/${pointed(id)}`;
    this.operations[`${id}.${verb}`] = {
      ...operation,
      channel: { $ref: channel },
      tags: [{ $ref: `#/components/tags/${area.name}` }],
      messages: Object.keys(messages).map((name) => ({ $ref: `${channel}/messages/${pointed(name)}` })),
    };
  }

  #messages(id: string, events: Readonly<Record<string, Schema>>, summary?: (name: string) => string): Record<string, Message> {
    return Object.fromEntries(
      Object.entries(events).map(([name, schema]) => [
        name,
        {
          name,
          ...(summary && { summary: summary(name) }),
          payload: this.schemas.of(`${id}.${name.replaceAll(":", "-")}`, schema),
        },
      ]),
    );
  }
}

/** AsyncAPI names a key in a header differently from OpenAPI. */
function asyncScheme(scheme: SecurityScheme): object {
  return scheme.type === "apiKey" ? { ...scheme, type: "httpApiKey" } : scheme;
}

/** Escapes a key for a JSON pointer (RFC 6901). */
function pointed(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}
