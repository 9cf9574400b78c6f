import { defineContract, defineErrors, definePlugin, reply } from "@portico/core";
import * as v from "valibot";

const errors = defineErrors({
  guest_unknown: { status: 404, message: "No such guest" },
  guest_gone: { status: 404, message: "The guest has left" },
  wrong_key: { status: 401 },
});

/** A contract with every kind of answer, for the tests of what is derived from contracts. */
export const guestContract = defineContract(
  { surface: "agent", auth: "house-key", envelope: (error) => ({ error: error.code }) },
  {
    greet: {
      method: "GET",
      path: "/guests/:name",
      summary: "Greet a guest",
      auth: "open",
      params: v.strictObject({ name: v.pipe(v.string(), v.maxLength(40)) }),
      query: v.strictObject({ loud: v.optional(v.picklist(["yes", "no"])), tag: v.optional(v.array(v.string())) }),
      success: reply.json(v.strictObject({ text: v.string(), tags: v.array(v.string()) })),
      errors,
    },
    save: {
      method: "PUT",
      path: "/guests/:name",
      summary: "Remember a guest",
      params: v.strictObject({ name: v.string() }),
      body: v.strictObject({ title: v.string(), age: v.pipe(v.string(), v.toNumber()), note: v.optional(v.string(), "none") }),
      success: reply.json(v.strictObject({ age: v.number() }), 201),
      errors,
      envelope: (error) => ({ type: "error", error: { type: error.code, message: error.message } }),
    },
    say: {
      method: "POST",
      path: "/said",
      summary: "A JSON text",
      body: v.optional(v.string()),
      success: reply.json(v.string()),
      envelope: (error) => ({ error: error.message }),
      errors: defineErrors({ rude: { status: 422, message: "One does not say that" } }),
      faults: defineErrors({ invalid_json: { status: 400, message: "That is no JSON" } }),
    },
    forget: { method: "DELETE", path: "/guests", summary: "Forget all", success: reply.empty() },
    ticks: {
      method: "GET",
      path: "/ticks/:count",
      summary: "Ticks",
      auth: "open",
      params: v.object({ count: v.string() }),
      success: reply.events({ tick: v.object({ n: v.number() }), done: v.null() }),
      errors,
    },
    picture: { method: "GET", path: "/picture", summary: "Bytes", auth: "open", success: reply.bytes() },
    move: {
      method: "POST",
      path: "/move",
      summary: "Bytes both ways",
      accepts: ["text/plain", "image/png"],
      success: reply.exchange(["text/plain"]),
    },
    tree: {
      method: "POST",
      path: "/tree",
      summary: "A schema that refers to itself",
      body: v.lazy(() => tree),
      success: reply.empty(),
    },
  },
);

interface Tree {
  readonly leaf?: string | undefined;
  readonly branches?: Tree[] | undefined;
}
const tree: v.GenericSchema<Tree> = v.object({ leaf: v.optional(v.string()), branches: v.optional(v.array(v.lazy(() => tree))) });

/** What the source of the ticks saw. */
export interface Ticking {
  made: number;
  returned: number;
}

export const guestsPlugin = (ticking: Ticking = { made: 0, returned: 0 }) =>
  definePlugin({
    name: "guests",
    config: v.strictObject({}),
    needs: {},
    contract: guestContract,
    guards: () => ({
      "house-key"(head) {
        if (head.header("x-key") !== "open sesame") throw errors.wrong_key();
      },
    }),
    setup: () => ({
      greet({ params, query, fail }) {
        if (params.name === "nobody") throw fail.guest_unknown();
        return { text: `${query.loud === "yes" ? "HELLO" : "Hello"} ${params.name}`, tags: query.tag ?? [] };
      },
      save: ({ body }) => ({ age: body.age }),
      say({ body, fail }) {
        if (body === "boo") throw fail.rude();
        return body ?? "nothing";
      },
      forget() {},
      async *ticks({ params, say, fail }) {
        try {
          if (params.count === "worn") throw fail.guest_gone();
          for (let n = 1; n <= Number(params.count); n++) {
            ticking.made++;
            yield say.tick({ n });
          }
          yield say.done(null);
        } finally {
          ticking.returned++;
        }
      },
      picture: () => new Response(new Uint8Array([1, 2, 3]), { headers: { "content-type": "image/png" } }),
      move: ({ exchange }) => void exchange.body.pipe(exchange.respond(200, { "content-type": "text/plain" })),
      tree() {},
    }),
  })({});
