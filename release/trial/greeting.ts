import { createApp, defineContract, definePlugin, reply } from "@portico/core";
import * as v from "valibot";

const contract = defineContract(
  { surface: "greetings", auth: "open", envelope: ({ code }) => ({ error: code }) },
  {
    greet: {
      method: "GET",
      path: "/greet/:name",
      summary: "Greets somebody",
      params: v.strictObject({ name: v.pipe(v.string(), v.maxLength(40)) }),
      success: reply.json(v.strictObject({ greeting: v.string() })),
    },
  },
);

const greetings = definePlugin({
  name: "greetings",
  config: v.strictObject({ word: v.string() }),
  needs: {},
  contract,
  setup: (_given, { word }) => ({ greet: ({ params }) => ({ greeting: `${word}, ${params.name}!` }) }),
});

const app = await createApp({ name: "greeting", plugins: [greetings({ word: "Hello" })] });
const answer = await app.surface("greetings").fetch(new Request("http://host/greet/Ada"));
console.log(await answer.text());
await app.close();
