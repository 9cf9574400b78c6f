// Nothing here runs: `npm run types` compiles it, and each line that must not compile says so.
import { defineContract, defineErrors, reply } from "@portico/core";
import { createClient, isCallFailed } from "@portico/core/client";
import * as v from "valibot";

const contract = defineContract(
  { surface: "agent", auth: "open", envelope: () => null },
  {
    greet: {
      method: "GET",
      path: "/greet/:name",
      summary: "",
      params: v.object({ name: v.string() }),
      query: v.object({ limit: v.optional(v.string()) }),
      success: reply.json(v.object({ text: v.string() })),
      errors: defineErrors({ guest_unknown: { status: 404 } }),
    },
    save: {
      method: "PUT",
      path: "/save",
      summary: "",
      body: v.object({ age: v.pipe(v.string(), v.toNumber()) }),
      success: reply.empty(),
    },
    ticks: {
      method: "GET",
      path: "/ticks",
      summary: "",
      success: reply.events({ tick: v.object({ n: v.number() }), done: v.null() }),
    },
    move: { method: "POST", path: "/move", summary: "", accepts: ["text/plain"], success: reply.exchange(["text/plain"]) },
  },
);
const client = createClient(contract, { baseURL: "http://127.0.0.1:1" });

export async function good(): Promise<void> {
  const { text } = await client.greet({ params: { name: "Ada" }, query: { limit: "1" }, headers: { "x-key": KEY } });
  const nothing: undefined = await client.save({ body: { age: "36" } });
  for await (const event of await client.ticks()) {
    if (event.event === "tick") event.data.n.toFixed();
    else event.data satisfies null;
  }
  const response: Response = await client.move({ body: new Blob([text]) });
  void [nothing, response];
}
declare const KEY: string;

export async function wrong(): Promise<void> {
  // @ts-expect-error the name is missing
  await client.greet();
  // @ts-expect-error the name is a text
  await client.greet({ params: { name: 1 } });
  // @ts-expect-error there is no such parameter
  await client.greet({ params: { name: "Ada" }, query: { offset: "1" } });
  // @ts-expect-error the route takes no body
  await client.greet({ params: { name: "Ada" }, body: {} });
  // @ts-expect-error the body travels before its transformation
  await client.save({ body: { age: 36 } });
  // @ts-expect-error there is no such route
  await client.forget();
  // @ts-expect-error the answer has a text only
  (await client.greet({ params: { name: "Ada" } })).title;
  for await (const event of await client.ticks()) {
    // @ts-expect-error the contract does not declare this event
    if (event.event === "tock") return;
    // @ts-expect-error which event it is must be asked first
    event.data.n;
  }
  try {
    await client.greet({ params: { name: "Ada" } });
  } catch (error) {
    if (!isCallFailed(error, contract.greet)) throw error;
    if (error.code === "guest_unknown" || error.code === "invalid_request" || error.code === "unknown") return;
    // @ts-expect-error the route cannot fail with this code
    if (error.code === "guest_gone") return;
  }
}
