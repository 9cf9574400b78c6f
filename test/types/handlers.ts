// Nothing here runs: `npm run types` compiles it, and each line that must not compile says so.
import { defineContract, defineErrors, definePlugin, type Handlers, parseJsonBody, type RequestHead, reply } from "@portico/core";
import * as v from "valibot";

const contract = defineContract(
  { surface: "agent", auth: "owner", envelope: (error) => ({ error: error.code }) },
  {
    greet: {
      method: "POST",
      path: "/greet/:name",
      summary: "",
      params: v.object({ name: v.string() }),
      query: v.object({ limit: v.pipe(v.string(), v.toNumber()) }),
      body: v.object({ title: v.string() }),
      success: reply.json(v.object({ text: v.string() })),
      errors: defineErrors({ guest_unknown: { status: 404 } }),
    },
    ticks: {
      method: "GET",
      path: "/ticks",
      summary: "",
      auth: "member",
      success: reply.events({ tick: v.object({ n: v.number() }) }),
    },
    peek: { method: "GET", path: "/peek", summary: "", auth: "open", success: reply.empty() },
    move: { method: "POST", path: "/move", summary: "", accepts: ["text/plain"], success: reply.exchange(["text/plain"]) },
    whole: { method: "GET", path: "/whole", summary: "", success: reply.bytes() },
    late: {
      method: "POST",
      path: "/late",
      summary: "",
      body: v.optional(v.object({ age: v.pipe(v.string(), v.toNumber()) })),
      bodyAs: "text",
      success: reply.empty(),
    },
    upload: { method: "POST", path: "/up", summary: "", accepts: ["text/plain"], bodyAs: "stream", success: reply.empty() },
  },
);

type Guards = {
  owner: (head: RequestHead) => { readonly ownerId: string };
  member: (head: RequestHead) => Promise<{ readonly memberId: number }>;
};
type All = Handlers<typeof contract, Guards>;

/** Everything as it should be: the ground that the wrong ones below stand on. */
const good: All = {
  greet({ params, query, body, who, fail }) {
    const limit: number = query.limit;
    if (limit > 1) throw fail.guest_unknown();
    return { text: `${who.ownerId} ${params.name} ${body.title}` };
  },
  async *ticks({ say, who }) {
    yield say.tick({ n: who.memberId });
  },
  peek({ who }) {
    const nobody: undefined = who;
    return nobody;
  },
  move: ({ exchange }) => void exchange.body.pipe(exchange.respond(200, {})),
  whole: async ({ request }) => new Response(request.url),
  late({ body }) {
    const text: string | undefined = body;
    const parsed: { readonly age: number } | undefined = parseJsonBody(contract.late, text);
    void parsed;
  },
  upload: ({ body }) => void body.stream.resume().on(body.headers.contentType, () => {}),
};

export const complete = plugin(() => good);

const { greet, ticks, peek, move, whole, late, upload } = good;

// @ts-expect-error a handler is missing
export const missing = plugin(() => ({ greet, ticks, peek, move, late, upload }));

// @ts-expect-error a handler is misspelt
export const misspelt = plugin(() => ({ greet, ticks, peek, move, late, upload, hwole: whole }));

export const undeclaredError: All["greet"] = ({ fail }) => {
  // @ts-expect-error the contract does not declare this error
  throw fail.guest_gone();
};

export const noErrors: All["peek"] = ({ fail }) => {
  // @ts-expect-error the route declares no error at all
  throw fail.guest_unknown();
};

export const undeclaredEvent: All["ticks"] = async function* ({ say }) {
  // @ts-expect-error the contract does not declare this event
  yield say.tock({ n: 1 });
};

export const wrongEvent: All["ticks"] = async function* ({ say }) {
  // @ts-expect-error the event carries a number
  yield say.tick({ n: "1" });
};

// @ts-expect-error events are made by say, or look as if they were
export const bareEvent: All["ticks"] = async function* () {
  yield { n: 1 };
};

// @ts-expect-error the text is missing
export const wrongResult: All["greet"] = () => ({});

// @ts-expect-error a text is no Response
export const noResponse: All["whole"] = () => "text";

// @ts-expect-error a JSON route does not return a Response
export const responseForJson: All["greet"] = () => new Response();

export const wrongBody: All["greet"] = ({ body }) => {
  // @ts-expect-error the title is a text
  const title: number = body.title;
  return { text: String(title) };
};

// @ts-expect-error a streamed body is no text
export const streamedText: All["upload"] = ({ body }) => void body.trim();

export const undeclaredField: All["greet"] = ({ body, params, query }) => ({
  // @ts-expect-error none of them is declared
  text: body.name + params.title + query.offset,
});

export const wrongWho: All["greet"] = ({ who }) => ({
  // @ts-expect-error the guard of this route answers an owner, not a member
  text: String(who.memberId),
});

export const openWho: All["peek"] = ({ who }) => {
  // @ts-expect-error an open route has no guard
  who.ownerId;
};

export const noExchange: All["greet"] = ({ exchange, request, body }) => {
  // @ts-expect-error only exchange routes have one
  exchange.respond(200, {});
  // @ts-expect-error only bytes routes have one
  request.url;
  return { text: body.title };
};

export const noBody: All["move"] = ({ body }) => {
  // @ts-expect-error exchange routes read their body themselves
  body.title;
};

export const unparsedBody: All["late"] = ({ body }) => {
  // @ts-expect-error the body is a text, whatever its schema says
  body.age;
  // @ts-expect-error a route without a body has nothing to parse
  parseJsonBody(contract.peek, body);
};

/** Guards get the head of a request without being told so. */
export const guarded = definePlugin({
  name: "guarded",
  config: v.strictObject({}),
  needs: {},
  contract: {},
  guards: () => ({
    owner(head) {
      // @ts-expect-error a head has no body
      head.body;
      return head.header("x-key");
    },
  }),
  setup: () => ({}),
});

function plugin(setup: () => All) {
  return definePlugin({
    name: "typed",
    config: v.strictObject({}),
    needs: {},
    contract,
    guards: (): Guards => ({ owner: () => ({ ownerId: "ada" }), member: async () => ({ memberId: 1 }) }),
    setup,
  });
}

export const inlineMisspelt = definePlugin({
  name: "typed",
  config: v.strictObject({}),
  needs: {},
  contract: defineContract(
    { surface: "agent", auth: "open", envelope: () => null },
    { peek: { method: "GET", path: "/peek", summary: "", success: reply.empty() } },
  ),
  // @ts-expect-error a misspelt handler written where it stands
  setup: () => ({ peke() {} }),
});
