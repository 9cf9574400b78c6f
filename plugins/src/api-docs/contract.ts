import { accessErrors, defineContract, reply } from "@portico/core/contract";
import * as v from "valibot";

/** `GET /openapi.json` and `GET /asyncapi.json` of a surface. `auth` names the scheme of their guard. */
export function apiDocsContract({ surface, auth }: { readonly surface: string; readonly auth: string }) {
  return defineContract(
    { surface, auth, envelope: (error) => ({ error: error.message, code: error.code }) },
    {
      openapi: {
        method: "GET",
        path: "/openapi.json",
        summary: "The calls of this service, as an OpenAPI 3.1 document",
        success: reply.json(v.looseObject({ openapi: v.string() })),
        errors: accessErrors,
      },
      asyncapi: {
        method: "GET",
        path: "/asyncapi.json",
        summary: "The events of this service, as an AsyncAPI 3.0 document",
        success: reply.json(v.looseObject({ asyncapi: v.string() })),
        errors: accessErrors,
      },
    },
  );
}
