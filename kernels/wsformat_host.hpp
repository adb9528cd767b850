// wsformat_host.hpp: a C++ program writes what its kernel stamped, and `wsformat import` reads it. No Python needed.
//
//     wsf::Capture capture;
//     capture.roles = 3; capture.events = 16; capture.iterations = 64; capture.ctas = 1;
//     capture.spec = wsf::read_file("gemm_roles.json");
//     capture.write("run.safetensors", slots, records);   // as copied from the device
//
//     wsformat import run.safetensors -o run.wsformat     (takes run.safetensors.meta, which lies beside it)
//
// C++11, header only. Buffers are those of wsformat_stamp.cuh: `slots` ctas * roles * events * iterations words of 32
// or 64 bits, `records` 40 bytes a CTA. Throws std::runtime_error; an incomplete file never has the final name.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace wsf {

struct Capture {
    int roles = 0, events = 0, iterations = 0, ctas = 1;
    int from = 0, stride = 1;         // WSF_FROM, WSF_STRIDE of the build: slot k holds iteration from + stride * k
    int first_cta = 0, cta_step = 1;  // as in wsf::Args: which CTAs of the grid these are
    std::string spec;  // the role spec, JSON; empty: given on import

    // Writes PATH (slots and role spec) and, with records, PATH.meta. Word is std::uint32_t or std::uint64_t.
    template <class Word> void write(const std::string& path, const Word* slots, const void* records = nullptr) const {
        static_assert(sizeof(Word) == 4 || sizeof(Word) == 8, "a slot has 32 or 64 bits");
        if (roles < 1 || events < 1 || iterations < 1 || ctas < 1)
            throw std::runtime_error(path + ": roles, events, iterations and ctas must be positive");
        if (from < 0 || stride < 1 || first_cta < 0 || cta_step < 1)
            throw std::runtime_error(path + ": stride and cta_step must be positive, from and first_cta not negative");
        const std::uint64_t bytes =
            sizeof(Word) * static_cast<std::uint64_t>(ctas) * static_cast<std::uint64_t>(roles)
            * static_cast<std::uint64_t>(events) * static_cast<std::uint64_t>(iterations);
        std::ostringstream header;
        header << "{\"__metadata__\":{\"layout\":\"" << roles << ',' << events << ',' << iterations << '"';
        if (from != 0 || stride != 1) header << ",\"window\":\"" << from << ',' << stride << '"';
        if (first_cta != 0 || cta_step != 1) header << ",\"ctas\":\"" << first_cta << ',' << cta_step << '"';
        if (!spec.empty()) header << ",\"spec\":" << quoted(spec);
        header << "},\"stamps\":{\"dtype\":\"" << (sizeof(Word) == 4 ? "U32" : "U64") << "\",\"shape\":[" << ctas << ','
               << roles << ',' << events << ',' << iterations << "],\"data_offsets\":[0," << bytes << "]}}";
        std::string text = header.str();
        text.append((8 - text.size() % 8) % 8, ' ');  // the data begins at a multiple of 8
        std::string length(8, '\0');
        for (int i = 0; i < 8; ++i) length[static_cast<std::size_t>(i)] = static_cast<char>(text.size() >> (8 * i));
        if (records) replace(path + ".meta", "", static_cast<const char*>(records), 40u * static_cast<unsigned>(ctas));
        replace(path, length + text, reinterpret_cast<const char*>(slots), bytes);
    }

  private:
    static std::string quoted(const std::string& text) {
        std::string out = "\"";
        for (const char c : text) {
            const unsigned char u = static_cast<unsigned char>(c);
            if (c == '"' || c == '\\') {
                out += '\\';
                out += c;
            } else if (u < 0x20) {
                char code[7];
                std::snprintf(code, sizeof code, "\\u%04x", u);
                out += code;
            } else {
                out += c;
            }
        }
        return out + '"';
    }

    // Files are little-endian, as every host of an NVIDIA GPU is.
    static void replace(const std::string& path, const std::string& head, const char* data, std::uint64_t bytes) {
        const std::string part = path + ".part";
        {
            std::ofstream file(part, std::ios::binary | std::ios::trunc);
            file.write(head.data(), static_cast<std::streamsize>(head.size()));
            file.write(data, static_cast<std::streamsize>(bytes));
            file.close();
            if (!file) {
                std::remove(part.c_str());
                throw std::runtime_error(path + ": cannot be written");
            }
        }
        std::remove(path.c_str());  // rename replaces on POSIX only
        if (std::rename(part.c_str(), path.c_str()) != 0) {
            std::remove(part.c_str());
            throw std::runtime_error(path + ": cannot be written");
        }
    }
};

inline std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) throw std::runtime_error(path + ": cannot be read");
    return text.str();
}

}  // namespace wsf
