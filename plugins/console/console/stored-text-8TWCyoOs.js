var e=class extends Error{name=`TextChanged`};async function t(e){let t=await e.text();return{text:t.replaceAll(/\r\n?/g,`
`),lineEnd:t.includes(`\r
`)?`\r
`:`
`,etag:e.headers.get(`etag`)??``}}function n(e,{lineEnd:t=`
`}={}){return e.replaceAll(`
`,t)}export{t as n,n as r,e as t};