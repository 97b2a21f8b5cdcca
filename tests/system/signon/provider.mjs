// A real provider of OpenID Connect (the package oidc-provider) that tests can make misbehave.
//
// usage: node provider.mjs REDIRECT_URI   It listens on a port of 127.0.0.1, and prints "ready PORT".
//
// POST /control with JSON changes what it does from then on:
//   {"people": {"alice": {"name": "alice", "groups": ["g"], "email": "a@b"}}}   who there is
//   {"rotate": "key-2"}      other keys; the old ones are gone
//   {"tamper": "expired"}    the next ID tokens are made anew: see `tampered`
//   {"alg": "ES256"}         what ID tokens are signed with
//   {"device": false}        it gives out no device codes
//   {"deviceReply": {…}}     what a reply with a device code says instead; null: nothing
//   {"claimsInToken": true}  all claims stand in the ID token, none need be asked for
//   {"userinfo": false}      there is no place to ask for claims
//   {"says": {…}}            what it says of itself instead; null: nothing
// and answers with {"requests": {PATH: COUNT}}, how often each of its paths was asked.
import { createServer } from 'node:http';
import * as jose from 'jose';
import Provider from 'oidc-provider';

const SECRET = 'a secret of ours, which is long enough: 0123456789';
const state = { people: {}, tamper: '', alg: 'RS256', claimsInToken: false, device: true, userinfo: true, keyId: 'key-1' };
let requests = {};
let keys, handler;

async function makeKeys() {
  keys = {};
  for (const alg of ['RS256', 'PS256', 'ES256']) {
    const { privateKey } = await jose.generateKeyPair(alg, { extractable: true });
    keys[alg] = { ...await jose.exportJWK(privateKey), alg, use: 'sig', kid: `${state.keyId}-${alg}` };
  }
}

async function tampered(token) {
  const claims = jose.decodeJwt(token);
  const { alg, kid } = jose.decodeProtectedHeader(token);
  const key = await jose.importJWK(keys[alg], alg);
  const signed = (changes, header = {}, by = key) =>
    new jose.SignJWT({ ...claims, ...changes }).setProtectedHeader({ alg, kid, ...header }).sign(by);
  const encoded = (value) => jose.base64url.encode(JSON.stringify(value));
  switch (state.tamper) {
    case 'nothing': return signed({});
    case 'expired': return signed({ iat: claims.iat - 300, exp: claims.iat - 120 });
    case 'old': return signed({ iat: claims.iat - 3600 });
    case 'future': return signed({ iat: claims.iat + 3600 });
    case 'no exp': return signed({ exp: undefined });
    case 'issuer': return signed({ iss: 'https://other.example.org' });
    case 'audience': return signed({ aud: 'another' });
    case 'azp': return signed({ aud: ['skep', 'another'], azp: 'another' });
    case 'two without azp': return signed({ aud: ['skep', 'another'] });
    case 'nonce': return signed({ nonce: 'of another login' });
    case 'no subject': return signed({ sub: undefined });
    case 'other subject': return signed({ sub: 'mallory' });
    case 'none': return `${encoded({ alg: 'none' })}.${encoded(claims)}.`;
    case 'HS256': return signed({}, { alg: 'HS256' }, new TextEncoder().encode(SECRET));
    case 'signature': return token.slice(0, -8) + (token.endsWith('AAAAAAAA') ? 'BBBBBBBB' : 'AAAAAAAA');
    case 'key': return signed({}, {}, (await jose.generateKeyPair(alg)).privateKey);
    case 'crit': return `${encoded({ alg, kid, crit: ['x'], x: 1 })}.${token.split('.').slice(1).join('.')}`;
    case 'no dots': return 'nonsense';
    default: throw new Error(`no such tampering: ${state.tamper}`);
  }
}

function makeProvider(port) {
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [{
      client_id: 'skep', client_secret: SECRET, redirect_uris: [process.argv[2]],
      post_logout_redirect_uris: ['https://skep.test/bye', new URL('/sign-in', process.argv[2]).href], id_token_signed_response_alg: state.alg,
      grant_types: ['authorization_code', ...(state.device ? ['urn:ietf:params:oauth:grant-type:device_code'] : [])],
    }],
    features: { deviceFlow: { enabled: true }, userinfo: { enabled: state.userinfo } },
    pkce: { methods: ['S256'], required: () => true },
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'], email: ['email'] },
    conformIdTokenClaims: !state.claimsInToken,
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'PS256', 'ES256'] },
    cookies: { keys: ['of the test'] },
    jwks: { keys: Object.values(keys) },
    ttl: { Session: 3600, Interaction: 600, Grant: 3600, AccessToken: 60, AuthorizationCode: 60, IdToken: 60 },
    async findAccount(_, id) {
      const person = state.people[id];
      return person && {
        accountId: id,
        claims: async () => ({ sub: id, preferred_username: person.name, groups: person.groups, email: person.email }),
      };
    },
  });
  provider.use(async (ctx, next) => {
    await next();
    if (state.tamper && ctx.path === '/token' && ctx.body?.id_token) {
      ctx.body = { ...ctx.body, id_token: await tampered(ctx.body.id_token) };
    }
    if (state.says && ctx.path === '/.well-known/openid-configuration') ctx.body = { ...ctx.body, ...state.says };
    if (state.deviceReply && ctx.body?.user_code) ctx.body = { ...ctx.body, ...state.deviceReply };
  });
  handler = provider.callback();
}

async function control(request, reply, port) {
  let body = '';
  for await (const part of request) body += part;
  const changes = JSON.parse(body || '{}');
  const { rotate, ...others } = changes;
  Object.assign(state, others);
  if (rotate) {
    state.keyId = rotate;
    await makeKeys();
  }
  if (rotate || 'alg' in changes || 'claimsInToken' in changes || 'device' in changes || 'userinfo' in changes) makeProvider(port);
  reply.setHeader('Content-Type', 'application/json');
  reply.end(JSON.stringify({ requests }));
  requests = {};
}

const server = createServer((request, reply) => {
  const { port } = server.address();
  const path = request.url.split('?')[0];
  requests[path] = (requests[path] ?? 0) + 1;
  if (path === '/control') control(request, reply, port);
  else handler(request, reply);
});
server.listen(0, '127.0.0.1', async () => {
  await makeKeys();
  makeProvider(server.address().port);
  console.log(`ready ${server.address().port}`);
});
